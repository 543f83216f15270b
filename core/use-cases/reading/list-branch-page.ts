/**
 * Lists branches in pages, found by a part of their name, each with its tip and how far it is from the default branch.
 *
 * Invariants: a page costs as much as its branches, however many the repository has.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { AheadBehind } from '../../ports/object-history.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type AheadBehindContext, countAheadBehind } from './ahead-behind.ts';
import { readCommitRows } from './commit-walk.ts';
import { type FindRefsContext, findRefs } from './find-refs.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { findDefaultBranch } from './resolve-ref.ts';

export type BranchPageContext = ObjectsContext & AheadBehindContext & FindRefsContext;

export interface WantedBranchPage {
  /** A part of the name, in any case; empty finds all. */
  readonly search: string;
  readonly page: Page;
  readonly signal: AbortSignal;
}

export interface ListedBranch {
  readonly name: string;
  readonly isDefault: boolean;
  readonly commit: CommitRow;
  /**
   * Commits that only this branch has, and that only the default branch has; null if there is no default branch, or
   * the count took too long.
   */
  readonly aheadBehind: AheadBehind | null;
}

export interface BranchPage {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  /** Short name. The branch need not exist. */
  readonly defaultBranch: string;
  /** In byte order of their names. */
  readonly branches: PageOf<ListedBranch>;
}

export async function listBranchPage(
  context: BranchPageContext,
  repository: FoundRepository,
  { search, page, signal }: WantedBranchPage,
): Promise<BranchPage> {
  const wanted = { kind: 'branch', search, order: 'name', page } as const;
  const { items, total } = await findRefs(context, repository.entity.state, wanted);
  const { defaultBranch } = repository;
  return closing(openView(context, repository), async (view) => {
    const base = findDefaultBranch(repository)?.id ?? null;
    if (items.length === 0) return { version: view.version, defaultBranch, branches: { items: [], total } };
    const reader = await view.objects();
    const tips = items.map(({ ref }) => ref.id);
    const rows = await readCommitRows(reader, tips);
    const aheadBehind = base === null ? [] : await countAheadBehind(context, reader, tips, base, signal);
    const branches = items.flatMap(({ name }, index): ListedBranch[] => {
      const commit = rows[index];
      if (commit === undefined) return [];
      return [{ name, isDefault: name === defaultBranch, commit, aheadBehind: aheadBehind[index] ?? null }];
    });
    return { version: view.version, defaultBranch, branches: { items: branches, total } };
  });
}
