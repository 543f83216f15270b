/**
 * Lists commits: those of a ref, and of these, those that changed what is at one path or that a search finds.
 *
 * Invariants: one decision here says what answers, and both answers have one form and the order of `git log`. The read
 * model has the default branch as it is now, and answers for it at a cost that does not grow with the history. The
 * objects answer for every other ref, for the past, for a path and for a search.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId, Timestamp } from '../../kernel/ids.ts';
import { hasMore, type Page, type PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { HistoryReader } from '../../ports/history.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { CommitFilter } from '../../ports/object-history.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type CommitTotals, readCommitRows, walkCommits } from './commit-walk.ts';
import type { ContentsPath } from './entry-at-path.ts';
import { bytesOf } from './list-tree.ts';
import {
  type FollowedHistory,
  findPathHistory,
  followPathHistory,
  type KnownPathHistories,
  type KnownPathHistory,
} from './path-history.ts';
import { closing, openView, openViewWithRows, type RepositoryView, type RowsContext } from './repository-view.ts';
import {
  answeredName,
  findDefaultBranch,
  namesDefaultBranch,
  resolveRef,
  withoutDefaultBranch,
} from './resolve-ref.ts';

/** The length of a part of an author or of a message that is searched for, in UTF-16 code units. */
export const COMMIT_SEARCH_LENGTH_MAX = 1_000;

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
  /** Only the commits that a search finds. */
  readonly search?: CommitSearch | null;
  readonly page: Page;
}

export interface WantedPath {
  /** Null for a text that cannot name anything in a tree. The path need not exist any more. */
  readonly path: ContentsPath | null;
  /** Whether those of the names count too that the file had before. */
  readonly follow?: boolean;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Commits that meet all that is not null. */
export interface CommitSearch {
  /** A part of the author's name or address, and of a line of the message; letters of ASCII in any case. */
  readonly author: string | null;
  readonly text: string | null;
  /** The times between which they were committed, both included. */
  readonly since: Timestamp | null;
  readonly until: Timestamp | null;
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
  /** How many commits the whole list has; null for a list of a path or of a search, which is not counted. */
  readonly total: number | null;
  readonly hasMore: boolean;
  /** Whether older commits may be missing, because the search for them reached a limit of time or number. */
  readonly truncated: boolean;
  /** The paths under which commits of this page changed the file, other than the one that was asked for. */
  readonly earlierPaths: readonly Uint8Array[];
}

type Refused = { readonly refused: Refusal };
/** What both ways of answering find. */
type FoundCommits = Pick<CommitList, 'commits' | 'total' | 'hasMore' | 'truncated' | 'earlierPaths'>;

/**
 * Refused with `repository-without-commits`, `default-branch-missing`, `ref-not-found`, `path-not-found` if no commit
 * ever had the path, or `repository-not-found` if it has been deleted.
 */
export async function listCommits(
  context: ListCommitsContext,
  known: FoundRepository,
  wanted: WantedCommits,
): Promise<CommitList | Refused> {
  const { ref, ofPath, search = null, page } = wanted;
  if (ofPath !== null || search !== null || known.asOf !== undefined || !namesDefaultBranch(known, ref)) {
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
  { ref, ofPath, search = null, page }: WantedCommits,
): Promise<CommitList | Refused> {
  const { version, repository } = view;
  const reader = await view.objects();
  const resolved = await resolveRef(repository, reader, ref);
  if ('refused' in resolved) return resolved;
  const { commit, name } = resolved;
  const found =
    ofPath === null && search === null
      ? counted(await walkCommits(reader, commit.id, page, context.commitTotals), page)
      : await searchedCommits(context, reader, { repository, tip: commit.id, ofPath, search, page });
  return 'refused' in found ? found : { version, ref: name, ...found };
}

function counted({ items, total }: PageOf<CommitRow>, page: Page): FoundCommits {
  return { commits: items, total, hasMore: hasMore(page, total), truncated: false, earlierPaths: [] };
}

interface SearchedPage extends Required<Pick<WantedCommits, 'ofPath' | 'search'>> {
  readonly repository: Pick<FoundRepository, 'id'>;
  readonly tip: ObjectId;
  readonly page: Page;
}

async function searchedCommits(
  context: ListCommitsContext,
  reader: ObjectReader,
  { repository, tip, ofPath, search, page }: SearchedPage,
): Promise<FoundCommits | Refused> {
  const wantedPath = ofPath?.path ?? null;
  if (ofPath !== null && (wantedPath === null || wantedPath.names.length === 0)) {
    return refuse({ code: 'path-not-found' });
  }
  const filter = filterOf(wantedPath, search);
  if (filter === null) return NO_COMMITS;
  const end = page.offset + page.limit;
  const signal = (ofPath ?? search)?.signal;
  if (signal === undefined) throw new TypeError('There is nothing to search for');
  const wanted = { tip, filter, wanted: end + 1, signal };
  const { parts, after } =
    ofPath?.follow === true
      ? await followPathHistory(context, repository.id, reader, wanted)
      : onePart(filter, await findPathHistory(context.knownPathHistories, repository.id, reader, wanted));
  const ids = parts.flatMap((part) => part.ids);
  // A search that finds nothing says nothing of the path.
  if (ids.length === 0 && after === 'end' && search === null) return refuse({ code: 'path-not-found' });
  return {
    commits: await readCommitRows(reader, ids.slice(page.offset, end)),
    total: null,
    hasMore: ids.length > end,
    truncated: after === 'bound' && ids.length <= end,
    earlierPaths: earlierPathsOn(page, parts),
  };
}

const NO_COMMITS: FoundCommits = {
  commits: [],
  total: null,
  hasMore: false,
  truncated: false,
  earlierPaths: [],
};

/** Returns null if no commit can be found: git reads a text of several lines as several texts, and none holds NUL. */
function filterOf(path: ContentsPath | null, search: CommitSearch | null): CommitFilter | null {
  const { author = null, text = null, since = null, until = null } = search ?? {};
  if (/[\n\0]/.test(`${author ?? ''}${text ?? ''}`)) return null;
  const [sinceSeconds, untilSeconds] = [secondsOf(since, Math.ceil), secondsOf(until, Math.floor)];
  if (untilSeconds !== null && untilSeconds < 0) return null;
  return {
    path: path === null ? null : bytesOf(path),
    author,
    text,
    sinceSeconds: sinceSeconds === null ? null : Math.max(0, sinceSeconds),
    untilSeconds,
  };
}

function secondsOf(time: Timestamp | null, rounded: (seconds: number) => number): number | null {
  return time === null ? null : rounded(Date.parse(time) / 1_000);
}

function onePart({ path }: CommitFilter, { ids, after }: KnownPathHistory): FollowedHistory {
  return { parts: [{ path, ids }], after };
}

function earlierPathsOn({ offset, limit }: Page, parts: FollowedHistory['parts']): readonly Uint8Array[] {
  let start = 0;
  return parts.flatMap(({ path, ids }, index) => {
    const isShown = start < offset + limit && start + ids.length > offset;
    start += ids.length;
    return index > 0 && isShown && path !== null ? [path] : [];
  });
}
