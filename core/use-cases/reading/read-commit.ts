/**
 * Reads one commit with what it changed: against its first parent, a root commit against the empty tree.
 *
 * Invariants: only commits that a current ref reaches are found. The diff is bounded in files, lines, bytes and
 * time, and says which bound cut it. One that its time cut is not kept: the next may be whole.
 */
import type { Diff } from '../../git/diff/diff.ts';
import type { Commit } from '../../git/objects.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type DiffContext, readDiff, type WantedDiff } from './read-diff.ts';
import { closing, openView } from './repository-view.ts';
import { commitNamed } from './resolve-ref.ts';

export interface WantedCommit {
  /** A full or a short commit id; anything else is not found. */
  readonly id: string;
  /** What the caller shows of the diff; by default up to the limits. */
  readonly shown?: WantedDiff;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface CommitWithDiff {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  /** Whole: a commit has at most `COMMIT_BYTES_MAX`. */
  readonly commit: Commit;
  readonly diff: Diff;
}

type Refused = { readonly refused: Refusal };

/** Refused with `ref-not-found` or `short-id-ambiguous`, and with `path-not-found` for a file that did not change. */
export async function readCommit(
  context: DiffContext,
  repository: FoundRepository,
  { id, shown = {}, signal }: WantedCommit,
): Promise<CommitWithDiff | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const commit = await commitNamed(repository, reader, id);
    if (commit === null) return refuse({ code: 'ref-not-found' });
    if ('refused' in commit) return commit;
    const diff = await readDiff(context, reader, commit.parents[0] ?? null, commit.id, { ...shown, signal });
    if ('refused' in diff) return diff;
    return { version: view.version, commit, diff };
  });
}
