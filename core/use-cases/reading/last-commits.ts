/**
 * Finds the commit that last touched each entry of a folder.
 *
 * Invariants: an answer is kept for its commit and path, which never change, and starts the next search: after a push
 * only the new commits are walked. Walks are bounded in time; for what they do not reach the commit is not known.
 * However many ask for a folder at the same time, one walks. Names are kept and given to git, so long ones are not
 * looked for.
 */
import { createLastChanges } from '../../git/history/last-changes.ts';
import type { TreeEntry } from '../../git/objects.ts';
import { nameKey } from '../../git/tree-bytes.ts';
import { MIB } from '../../kernel/byte-units.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { LINKED_NAME_BYTES_MAX } from '../../kernel/limits.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';

/** How long git may walk for the last commits of a folder's entries. */
export const LAST_COMMITS_SPAN_MS = 5_000;
/** How much of what git lists for the last commits of a folder is read at first. Internal: the rest is read later. */
const LAST_COMMITS_FIRST_BYTES_MAX = 2 * MIB;

/** The entries of one folder at one commit whose last commit is known, or is known not to be found in time. */
export interface KnownFolder {
  readonly tip: ObjectId;
  /** By `nameKey`. `left` is the entry's `<mode> <id>`; `commit` is null if it was not found in time. */
  readonly entries: ReadonlyMap<string, { readonly left: string; readonly commit: ObjectId | null }>;
}

/** A cache, bounded in memory. */
export interface KnownFolders {
  get(key: string): KnownFolder | undefined;
  set(key: string, folder: KnownFolder): void;
}

export interface FolderAt {
  /** Names the repository. */
  readonly key: string;
  readonly tip: ObjectId;
  /** The path of the folder, without a slash at its end. */
  readonly path: Uint8Array;
}

/** The searches under way, for each cache by the folder and its commit. */
const UNDER_WAY = new WeakMap<KnownFolders, Map<string, Promise<unknown>>>();

/** Returns the commits in the order of the entries; null where the commit is not known, or the name is too long. */
export async function findLastCommits(
  known: KnownFolders,
  reader: ObjectReader,
  folder: FolderAt,
  entries: readonly TreeEntry[],
  signal: AbortSignal,
): Promise<readonly (ObjectId | null)[]> {
  const underWay = UNDER_WAY.get(known) ?? new Map<string, Promise<unknown>>();
  UNDER_WAY.set(known, underWay);
  const key = `${folder.key} ${nameKey(folder.path)} ${folder.tip}`;
  for (let other = underWay.get(key); other !== undefined; other = underWay.get(key)) {
    // It may fail because its own client left: then this request searches. Mostly it has found all.
    await other.catch(() => undefined);
    signal.throwIfAborted();
  }
  const search = findAll(known, reader, folder, entries, signal);
  underWay.set(key, search);
  try {
    return await search;
  } finally {
    underWay.delete(key);
  }
}

async function findAll(
  known: KnownFolders,
  reader: ObjectReader,
  { key, tip, path }: FolderAt,
  entries: readonly TreeEntry[],
  signal: AbortSignal,
): Promise<readonly (ObjectId | null)[]> {
  const name = `${key} ${nameKey(path)}`;
  const kept = known.get(`${name} ${tip}`);
  const before = known.get(name);
  const found = new Map(kept?.entries);
  const isNew = ({ name: own }: TreeEntry): boolean =>
    own.length <= LINKED_NAME_BYTES_MAX && found.get(nameKey(own)) === undefined;
  let wanted = entries.filter(isNew);
  if (wanted.length > 0) {
    const start =
      before !== undefined && before.tip !== tip && (await reader.isAncestor(before.tip, tip)) ? before : null;
    const search = { reader, tip, path, signal };
    const walked = await walk(search, start === null ? [] : [start.tip], wanted);
    for (const entry of wanted) {
      const entryKey = nameKey(entry.name);
      const left = `${entry.mode} ${entry.id}`;
      const earlier = walked.whole ? start?.entries.get(entryKey) : undefined;
      const commit = walked.found.get(entryKey) ?? (earlier?.left === left ? earlier.commit : null);
      if (commit !== null || start === null || !walked.whole) found.set(entryKey, { left, commit });
    }
    // An earlier answer did not have these, or a reset took them back to what they were before it.
    wanted = wanted.filter(isNew);
    if (wanted.length > 0) {
      const again = await walk(search, [], wanted);
      for (const entry of wanted) {
        const commit = again.found.get(nameKey(entry.name)) ?? null;
        found.set(nameKey(entry.name), { left: `${entry.mode} ${entry.id}`, commit });
      }
    }
    const folder = { tip, entries: found };
    known.set(`${name} ${tip}`, folder);
    known.set(name, folder);
  }
  return entries.map(({ name: own }) =>
    own.length > LINKED_NAME_BYTES_MAX ? null : (found.get(nameKey(own))?.commit ?? null),
  );
}

interface Search {
  readonly reader: ObjectReader;
  readonly tip: ObjectId;
  readonly path: Uint8Array;
  readonly signal: AbortSignal;
}

interface Walked {
  readonly found: ReadonlyMap<string, ObjectId>;
  /** False if the time was up. */
  readonly whole: boolean;
}

/**
 * Walks everything below the folder while that finds entries, then only what is left: old entries are mostly few, and
 * to skip the commits that touch none of them is much cheaper than to list what those touched.
 */
async function walk(search: Search, exclude: readonly ObjectId[], wanted: readonly TreeEntry[]): Promise<Walked> {
  const { path } = search;
  const [only] = wanted;
  if (only !== undefined && wanted.length === 1) {
    const { found, end } = await walkPaths(
      search,
      exclude,
      [joined(path, only.name)],
      wanted,
      Number.POSITIVE_INFINITY,
    );
    return { found, whole: end === 'end' };
  }
  const first = await walkPaths(search, exclude, [path], wanted, LAST_COMMITS_FIRST_BYTES_MAX);
  const rest = wanted.filter(({ name }) => !first.found.has(nameKey(name)));
  if (rest.length === 0 || first.end !== 'bytes') return { found: first.found, whole: first.end === 'end' };
  const paths = rest.map(({ name }) => joined(path, name));
  const second = await walkPaths(search, exclude, paths, rest, Number.POSITIVE_INFINITY);
  return { found: new Map([...first.found, ...second.found]), whole: second.end === 'end' };
}

async function walkPaths(
  { reader, tip, path, signal }: Search,
  exclude: readonly ObjectId[],
  paths: readonly Uint8Array[],
  wanted: readonly TreeEntry[],
  bytesMax: number,
): Promise<{ readonly found: ReadonlyMap<string, ObjectId>; readonly end: 'end' | 'bytes' | 'time' }> {
  const search = createLastChanges(path, wanted);
  let bytes = 0;
  try {
    const bounded = { signal, spanMs: LAST_COMMITS_SPAN_MS };
    for await (const chunk of reader.history.changesBelow(tip, exclude, paths, bounded)) {
      if (!search.add(chunk)) break;
      bytes += chunk.length;
      if (bytes > bytesMax) return { found: search.found, end: 'bytes' };
    }
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return { found: search.found, end: 'time' };
  }
  return { found: search.found, end: 'end' };
}

function joined(folder: Uint8Array, name: Uint8Array): Uint8Array {
  if (folder.length === 0) return name;
  const path = new Uint8Array(folder.length + 1 + name.length);
  path.set(folder);
  path[folder.length] = 0x2f;
  path.set(name, folder.length + 1);
  return path;
}
