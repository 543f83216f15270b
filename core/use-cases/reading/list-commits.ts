/**
 * Lists commits: those of a ref, or those that changed what is at one path.
 *
 * Invariants: one decision here says what answers, and both answers have one form and the order of `git log`. The read
 * model has the default branch as it is now, and answers for it at a cost that does not grow with the history. The
 * objects answer for every other ref, for the past, and for a path.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { hasMore, type Page, type PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { HistoryReader } from '../../ports/history.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type CommitTotals, readCommitRows, walkCommits } from './commit-walk.ts';
import type { ContentsPath } from './entry-at-path.ts';
import { bytesOf } from './list-tree.ts';
import { findPathHistory, type KnownPathHistories } from './path-history.ts';
import { closing, openView, openViewWithRows, type RepositoryView, type RowsContext } from './repository-view.ts';
import {
  answeredName,
  findDefaultBranch,
  namesDefaultBranch,
  resolveRef,
  withoutDefaultBranch,
} from './resolve-ref.ts';

export interface ListCommitsContext extends RowsContext {
  readonly readModels: ReadModelProgress & Pick<HistoryReader, 'defaultBranchCommits'>;
  readonly commitTotals: CommitTotals;
  readonly knownPathHistories: KnownPathHistories;
}

export interface WantedCommits {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** Only the commits that changed what is at one path; null: all commits of the ref. */
  readonly ofPath: WantedPath | null;
  readonly page: Page;
}

export interface WantedPath {
  /** Null for a text that cannot name anything in a tree. The path need not exist any more. */
  readonly path: ContentsPath | null;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface CommitList {
  /**
   * The version of the repository that the list shows. It is later than the caller's if a push was committed since.
   */
  readonly version: string;
  /** The ref that the caller named, or the short name of the default branch. */
  readonly ref: string;
  /** Newest first, in the order of `git log`. */
  readonly commits: readonly CommitRow[];
  /** How many commits the whole list has; null for a list of a path, which is not counted. */
  readonly total: number | null;
  readonly hasMore: boolean;
  /** Whether older commits may be missing, because the search for those of a path reached a limit of time or number. */
  readonly truncated: boolean;
}

type Refused = { readonly refused: Refusal };
/** What both ways of answering find. */
type FoundCommits = Pick<CommitList, 'commits' | 'total' | 'hasMore' | 'truncated'>;

/**
 * Refused with `repository-without-commits`, `default-branch-missing`, `ref-not-found`, `path-not-found` if no commit
 * ever had the path, or `repository-not-found` if it has been deleted.
 */
export async function listCommits(
  context: ListCommitsContext,
  known: FoundRepository,
  wanted: WantedCommits,
): Promise<CommitList | Refused> {
  const { ref, ofPath, page } = wanted;
  if (ofPath !== null || known.asOf !== undefined || !namesDefaultBranch(known, ref)) {
    return closing(openView(context, known), (view) => listFromObjects(context, view, wanted));
  }
  const opened = await openViewWithRows(context, known, {
    isEmpty: (repository) => findDefaultBranch(repository) === null,
    read: ({ id }) => context.readModels.defaultBranchCommits(id, page),
  });
  if ('refused' in opened) return opened;
  return closing(opened, (view) => {
    const { version, repository, rows } = view;
    // The default branch may have changed since the caller found the repository: then `ref` may name another one.
    if (rows !== null && namesDefaultBranch(repository, ref)) {
      return { version, ref: answeredName(repository, ref), ...counted(rows, page) };
    }
    return ref === null ? refuse(withoutDefaultBranch(repository)) : listFromObjects(context, view, wanted);
  });
}

async function listFromObjects(
  context: ListCommitsContext,
  view: RepositoryView<unknown>,
  { ref, ofPath, page }: WantedCommits,
): Promise<CommitList | Refused> {
  const { version, repository } = view;
  const reader = await view.objects();
  const resolved = await resolveRef(repository, reader, ref);
  if ('refused' in resolved) return resolved;
  const { commit, name } = resolved;
  const found =
    ofPath === null
      ? counted(await walkCommits(reader, commit.id, page, context.commitTotals), page)
      : await commitsOfPath(context, reader, { repository, tip: commit.id, ...ofPath, page });
  return 'refused' in found ? found : { version, ref: name, ...found };
}

function counted({ items, total }: PageOf<CommitRow>, page: Page): FoundCommits {
  return { commits: items, total, hasMore: hasMore(page, total), truncated: false };
}

interface PathPage extends WantedPath {
  readonly repository: Pick<FoundRepository, 'id'>;
  readonly tip: ObjectId;
  readonly page: Page;
}

async function commitsOfPath(
  { knownPathHistories }: ListCommitsContext,
  reader: ObjectReader,
  { repository, tip, path, page, signal }: PathPage,
): Promise<FoundCommits | Refused> {
  if (path === null || path.names.length === 0) return refuse({ code: 'path-not-found' });
  const end = page.offset + page.limit;
  const search = { tip, path: bytesOf(path), wanted: end + 1, signal };
  const { ids, after } = await findPathHistory(knownPathHistories, repository.id, reader, search);
  if (ids.length === 0 && after === 'end') return refuse({ code: 'path-not-found' });
  return {
    commits: await readCommitRows(reader, ids.slice(page.offset, end)),
    total: null,
    hasMore: ids.length > end,
    truncated: after === 'bound' && ids.length <= end,
  };
}
