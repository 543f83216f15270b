/**
 * Branches and commits of repositories, read from a read model.
 *
 * Invariants: an answer describes one revision of the repository's stream, and names it.
 */
import type { CommitRow } from '../git/commit-row.ts';
import type { ObjectId, RepositoryId } from '../kernel/ids.ts';
import type { Page, PageOf } from '../kernel/page.ts';

export interface BranchRow {
  /** Without `refs/heads/`. */
  readonly name: string;
  readonly commit: CommitRow;
}

export interface AtRevision {
  /** The revision of the repository's stream that the answer describes. */
  readonly revision: number;
}

export interface HistoryReader {
  /** Returns every branch in byte order of names; null for a repository that the model does not know. */
  branches(repository: RepositoryId): Promise<(AtRevision & { readonly branches: readonly BranchRow[] }) | null>;
  /**
   * Returns commits of the default branch from its tip, in the order of `git log`. The cost does not grow with the
   * page's offset. Null if the branch does not exist.
   */
  defaultBranchCommits(
    repository: RepositoryId,
    page: Page,
  ): Promise<(AtRevision & { readonly tip: ObjectId } & PageOf<CommitRow>) | null>;
}
