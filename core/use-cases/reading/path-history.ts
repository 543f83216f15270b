/**
 * Finds the commits that changed what is at one path, or that a search finds, as `git log` chooses and orders them.
 *
 * Invariants: what was walked is kept for its commit and filter, which never change. A history is bounded in commits
 * and time, and says when either left something out. It goes on under the names that a file had before, if it is asked
 * to.
 */
import { createRenameSearch } from '../../git/diff/rename-search.ts';
import { nameKey } from '../../git/tree-bytes.ts';
import type { ObjectId, RepositoryId } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { CommitFilter } from '../../ports/object-history.ts';
import { findEntry } from './entry-at-path.ts';
import { namesIn } from './list-tree.ts';

/**
 * Commits of one path, or of one search, that are listed, and how long git may walk for them. When that time has
 * passed, no further earlier name is looked for.
 */
export const PATH_HISTORY_COMMITS_MAX = 10_000;
export const PATH_HISTORY_SPAN_MS = 5_000;
/** Names that a file had before, under which its history goes on. */
export const PATH_RENAMES_MAX = 20;

/** A file at a commit. */
export interface FileBefore {
  readonly tip: ObjectId;
  readonly path: Uint8Array;
}

/** The start of a path's history. `end`: there is no more; `bound`: more may be beyond a limit. */
export interface KnownPathHistory {
  readonly ids: readonly ObjectId[];
  readonly after: 'end' | 'more' | 'bound';
  /** Where the file was before the oldest of the commits, if that was looked for; null: that commit made it. */
  readonly before?: FileBefore | null;
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
  const key = keyOf(repository, search);
  const found = known.get(key);
  if (found !== undefined && (found.after !== 'more' || found.ids.length >= wanted)) return found;
  const walked = await walk(reader, { ...search, wanted });
  known.set(key, walked);
  return walked;
}

function keyOf(
  repository: RepositoryId,
  { tip, filter: { path, ...filter } }: Pick<PathSearch, 'tip' | 'filter'>,
): string {
  return `${repository} ${tip} ${JSON.stringify(filter)} ${path === null ? '' : `path ${nameKey(path)}`}`;
}

/** The history of a file under its names, the last one first. */
export interface FollowedHistory {
  readonly parts: readonly { readonly path: Uint8Array | null; readonly ids: readonly ObjectId[] }[];
  readonly after: KnownPathHistory['after'];
}

/** Finds every commit of a path. */
const EVERY_COMMIT: Omit<CommitFilter, 'path'> = {
  author: null,
  text: null,
  sinceSeconds: null,
  untilSeconds: null,
};

export interface FollowContext {
  readonly knownPathHistories: KnownPathHistories;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Does what `findPathHistory` does, and goes on before the commit that gave the file its name. */
export async function followPathHistory(
  { knownPathHistories: known, clock }: FollowContext,
  repository: RepositoryId,
  reader: ObjectReader,
  { wanted, signal, tip, filter }: PathSearch,
): Promise<FollowedHistory> {
  const endMs = clock.monotonicMs() + PATH_HISTORY_SPAN_MS;
  const parts: FollowedHistory['parts'][number][] = [];
  let left = Math.min(wanted, PATH_HISTORY_COMMITS_MAX);
  let at = { tip, path: filter.path };
  for (;;) {
    const { path } = at;
    const search = { tip: at.tip, filter: { ...filter, path }, wanted: left, signal };
    const part = await findPathHistory(known, repository, reader, search);
    parts.push({ path, ids: part.ids });
    left -= part.ids.length;
    if (path === null || part.after !== 'end') return { parts, after: part.after };
    if (left <= 0) return { parts, after: wanted > PATH_HISTORY_COMMITS_MAX ? 'bound' : 'more' };
    if (clock.monotonicMs() > endMs) return { parts, after: 'bound' };
    const before = await findBefore(known, repository, reader, { tip: at.tip, path, signal });
    if (before === 'unknown') return { parts, after: 'bound' };
    if (before === null) return { parts, after: 'end' };
    if (parts.length > PATH_RENAMES_MAX) return { parts, after: 'bound' };
    at = before;
  }
}

/** Finds where the file was before its oldest commit, which a search may leave out. */
async function findBefore(
  known: KnownPathHistories,
  repository: RepositoryId,
  reader: ObjectReader,
  { tip, path, signal }: FileBefore & Pick<PathSearch, 'signal'>,
): Promise<FileBefore | null | 'unknown'> {
  const search = { tip, filter: { ...EVERY_COMMIT, path } };
  const wanted = PATH_HISTORY_COMMITS_MAX;
  const whole = await findPathHistory(known, repository, reader, { ...search, wanted, signal });
  if (whole.after !== 'end') return 'unknown';
  if (whole.before !== undefined) return whole.before;
  const before = await findBeforeCommit(reader, whole.ids.at(-1), path, signal);
  if (before !== 'unknown') known.set(keyOf(repository, search), { ...whole, before });
  return before;
}

/** Looks at what the commit changed, which is bounded as a diff is. */
async function findBeforeCommit(
  reader: ObjectReader,
  id: ObjectId | undefined,
  path: Uint8Array,
  signal: AbortSignal,
): Promise<FileBefore | null | 'unknown'> {
  const commit = id === undefined ? null : await reader.commit(id);
  const [parent] = commit?.parents ?? [];
  if (commit === null || parent === undefined) return null;
  const found = await findEntry(reader, { type: 'tree', id: commit.tree }, { names: namesIn(path), folder: false });
  // git finds renames of files alone.
  if ('refused' in found || found.type === 'dir' || found.type === 'submodule') return null;
  const search = createRenameSearch(path);
  try {
    const bounded = { signal, spanMs: PATH_HISTORY_SPAN_MS, detail: 'records' as const };
    const chunks = reader.history.diff(parent, commit.id, bounded);
    for await (const chunk of chunks) if (!search.add(chunk)) break;
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return 'unknown';
  }
  return search.earlierPath === null ? null : { tip: parent, path: search.earlierPath };
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
