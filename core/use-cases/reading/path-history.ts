/**
 * Finds the commits that changed what is at one path, or that a search finds, as `git log` chooses and orders them.
 *
 * Invariants: what was walked is kept for its commit and filter, which never change. A history is bounded in commits
 * and time, and says when either left something out.
 */
import { nameKey } from '../../git/tree-bytes.ts';
import type { ObjectId, RepositoryId } from '../../kernel/ids.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { CommitFilter } from '../../ports/object-history.ts';

/** Commits of one path, or of one search, that are listed, and how long git may walk for them. */
export const PATH_HISTORY_COMMITS_MAX = 10_000;
export const PATH_HISTORY_SPAN_MS = 5_000;

/** The start of a path's history. `end`: there is no more; `bound`: more may be beyond a limit. */
export interface KnownPathHistory {
  readonly ids: readonly ObjectId[];
  readonly after: 'end' | 'more' | 'bound';
}

/** A cache, bounded in memory. */
export interface KnownPathHistories {
  get(key: string): KnownPathHistory | undefined;
  set(key: string, history: KnownPathHistory): void;
}

export interface PathSearch {
  readonly tip: ObjectId;
  readonly filter: CommitFilter;
  /** How many commits are needed at least, if there are as many. */
  readonly wanted: number;
  readonly signal: AbortSignal;
}

/** Returns at least the wanted commits, newest first. */
export async function findPathHistory(
  known: KnownPathHistories,
  repository: RepositoryId,
  reader: ObjectReader,
  { wanted: all, ...search }: PathSearch,
): Promise<KnownPathHistory> {
  const wanted = Math.min(all, PATH_HISTORY_COMMITS_MAX);
  const key = `${repository} ${search.tip} ${filterKey(search.filter)}`;
  const found = known.get(key);
  if (found !== undefined && (found.after !== 'more' || found.ids.length >= wanted)) return found;
  const walked = await walk(reader, { ...search, wanted });
  known.set(key, walked);
  return walked;
}

function filterKey({ path, ...search }: CommitFilter): string {
  return `${JSON.stringify(search)} ${path === null ? '' : `path ${nameKey(path)}`}`;
}

/**
 * The least that is walked: the pages after the first one then need no walk of their own. Internal: both ways list the
 * same commits.
 */
const WALKED_MIN = 1_000;

async function walk(reader: ObjectReader, { tip, filter, wanted, signal }: PathSearch): Promise<KnownPathHistory> {
  const count = Math.max(wanted, WALKED_MIN);
  const ids: ObjectId[] = [];
  try {
    for await (const batch of reader.history.findCommits(tip, filter, { signal, spanMs: PATH_HISTORY_SPAN_MS })) {
      ids.push(...batch);
      if (ids.length <= count) continue;
      const after = ids.length > PATH_HISTORY_COMMITS_MAX ? 'bound' : 'more';
      return { ids: ids.slice(0, PATH_HISTORY_COMMITS_MAX), after };
    }
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return { ids, after: 'bound' };
  }
  return ids.length > PATH_HISTORY_COMMITS_MAX
    ? { ids: ids.slice(0, PATH_HISTORY_COMMITS_MAX), after: 'bound' }
    : { ids, after: 'end' };
}
