/**
 * Reads what a commit changed as text: against its first parent, a root commit against the empty tree.
 *
 * Invariants: only commits that a current ref reaches are found. The repository's objects stay open until the reader of
 * the stream closes it; on every other exit this file closes them.
 */
import type { Commit } from '../../git/objects.ts';
import { refuse } from '../../kernel/decider.ts';
import { EMPTY_TREE_ID, type ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { CommitTextForm, ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type ObjectsContext, openView } from './repository-view.ts';
import { commitNamed } from './resolve-ref.ts';

export interface WantedCommitText {
  readonly id: string;
  readonly form: CommitTextForm;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface CommitText {
  readonly commit: ObjectId;
  readonly chunks: () => AsyncIterable<Uint8Array>;
  /** Whether git has made all of it, so that only its bytes wait for their reader. */
  readonly isMade: () => boolean;
  readonly close: () => void;
}

/** Refused as `readCommit` is, and with `commit-without-patch` for a merge and a commit that changed nothing. */
export async function readCommitText(
  context: ObjectsContext,
  repository: FoundRepository,
  { id, form, signal }: WantedCommitText,
): Promise<CommitText | { readonly refused: Refusal }> {
  const view = openView(context, repository);
  let isOpen = false;
  try {
    const reader = await view.objects();
    const commit = await commitNamed(repository, reader, id);
    if (commit === null) return refuse({ code: 'ref-not-found' });
    if ('refused' in commit) return commit;
    const parent = commit.parents[0] ?? null;
    if (form === 'patch' && !(await hasPatch(reader, commit, parent))) return refuse({ code: 'commit-without-patch' });
    isOpen = true;
    let isMade = false;
    const onMade = (): void => {
      isMade = true;
    };
    const chunks = () => reader.commitText({ commit: commit.id, parent, form, signal, onMade });
    return { commit: commit.id, chunks, isMade: () => isMade, close: () => view.close() };
  } finally {
    if (!isOpen) view.close();
  }
}

/** Git makes no mail of a merge, and for one it would take another commit. */
async function hasPatch(reader: ObjectReader, { tree, parents }: Commit, parent: ObjectId | null): Promise<boolean> {
  if (parents.length > 1) return false;
  const before = parent === null ? EMPTY_TREE_ID : ((await reader.commit(parent))?.tree ?? null);
  return tree !== before;
}
