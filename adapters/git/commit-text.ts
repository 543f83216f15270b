/**
 * What a commit changed, as the text that git itself reads again: git-diff-tree(1), and git-format-patch(1).
 *
 * Invariants: git gets ids in full; neither attributes nor configuration of the machine change what it prints. No text
 * takes a slot of those that fetches, pushes and pages use, and git does not wait for whoever reads it slowly.
 */
import { EMPTY_TREE_ID } from '../../core/kernel/ids.ts';
import type { CommitTextOptions } from '../../core/ports/object-database.ts';
import {
  AS_IT_IS,
  DIFF_CPU_SECONDS_MAX,
  DIFF_RENAME_FILES_MAX,
  HISTORY_READ_MEMORY_BYTES_MAX,
  HISTORY_VARIABLES,
  type HistoryContext,
} from './object-history.ts';
import { type GitCommand, noInput, type ObjectView, type Pacing } from './process/git-commands.ts';

/** How long git may take for the text of a commit, the time that it waits for its reader included. */
export const COMMIT_TEXT_SPAN_MS = 60_000;

const CHANGES = ['-p', '--binary', '--full-index', '--unified=3', '--find-renames', `-l${DIFF_RENAME_FILES_MAX}`];
CHANGES.push('--submodule=short', '--src-prefix=a/', '--dst-prefix=b/', ...AS_IT_IS);

const DIFF = ['diff-tree', '-r', ...CHANGES];
/** Without the signature, which is the version of git. */
const PATCH = ['format-patch', '-1', '--stdout', '--stat', '--subject-prefix=PATCH', '--no-numbered', '--no-signature'];
PATCH.push('--no-thread', '--no-cover-letter', '--no-notes', ...CHANGES);

const LIMITS = { memoryBytesMax: HISTORY_READ_MEMORY_BYTES_MAX, cpuSecondsMax: DIFF_CPU_SECONDS_MAX };

export async function* commitText(
  { git, slots: { texts: slots } }: HistoryContext,
  view: ObjectView,
  { commit, parent, form, signal, onMade }: CommitTextOptions,
  pacing: Pacing,
): AsyncGenerator<Uint8Array> {
  // The id is 40 hex digits, so git cannot take it for an option.
  const args = form === 'diff' ? [...DIFF, parent ?? EMPTY_TREE_ID, commit, '--'] : [...PATCH, commit, '--'];
  const own = { variables: HISTORY_VARIABLES, limits: LIMITS, wallMsMax: COMMIT_TEXT_SPAN_MS };
  const command: GitCommand = { args, view, signal, slots, pacing, ...own };
  try {
    yield* git.stream(command, noInput(), ({ killed, code }) => killed === 'no' && code === 0);
  } finally {
    onMade?.();
  }
}
