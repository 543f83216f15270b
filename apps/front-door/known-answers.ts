/**
 * What reading found out about commits, in memory: commits never change, so these answers stay right.
 *
 * Invariants: every cache is bounded in memory, whatever is in a repository.
 */
import { LRUCache } from 'lru-cache';
import type { Blame } from '../../core/git/blame.ts';
import type { Diff } from '../../core/git/diff/diff.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import type { AheadBehind } from '../../core/ports/object-history.ts';
import type { AheadBehindContext } from '../../core/use-cases/reading/ahead-behind.ts';
import type { KnownBlames } from '../../core/use-cases/reading/blame-file.ts';
import type { CommitTotals } from '../../core/use-cases/reading/commit-walk.ts';
import type { KnownComparison, KnownComparisons } from '../../core/use-cases/reading/compare-refs.ts';
import type { KnownFiles, KnownList } from '../../core/use-cases/reading/find-files.ts';
import type { KnownFolder, KnownFolders } from '../../core/use-cases/reading/last-commits.ts';
import type { KnownCommitSeconds } from '../../core/use-cases/reading/list-branch-page.ts';
import type { KnownPathHistories, KnownPathHistory } from '../../core/use-cases/reading/path-history.ts';
import type { KnownPushes, PushedCommits } from '../../core/use-cases/reading/pushes-of-commits.ts';
import type { KnownDiffs } from '../../core/use-cases/reading/read-diff.ts';
import type { KnownLines, LineIndex } from '../../core/use-cases/reading/read-lines.ts';
import type { KnownSearch, KnownSearches } from '../../core/use-cases/reading/search-code.ts';

/**
 * What the website keeps of what it read: the memory for entries of folders and for commits of paths, and counts.
 * Internal: what is not kept is read again.
 */
export const KNOWN_FOLDERS_BYTES_MAX = 16 * MIB;
export const KNOWN_PATHS_BYTES_MAX = 16 * MIB;
export const KNOWN_APART_MAX = 20_000;
export const KNOWN_COMMIT_DATES_MAX = 100_000;
export const KNOWN_COMPARISONS_COMMITS_MAX = 100_000;
/** The memory for diffs: a large one is of some megabytes. Internal: what is not kept is made again. */
export const KNOWN_DIFFS_BYTES_MAX = 32 * MIB;
/** The memory for who brought the lines of files. Internal: what is not kept is looked for again. */
export const KNOWN_BLAMES_BYTES_MAX = 32 * MIB;
/** The memory for where the lines of large files begin. Internal: what is not kept is read again. */
const KNOWN_LINES_BYTES_MAX = 4 * MIB;
/** The memory for which push brought which commit. Internal: what is not kept is read again. */
export const KNOWN_PUSHES_BYTES_MAX = 64 * MIB;

/**
 * The memory for the paths of trees, of which the longest list fits, and for what searches found. Internal: what is not
 * kept is read again.
 */
export const KNOWN_FILES_BYTES_MAX = 80 * MIB;
export const KNOWN_SEARCHES_BYTES_MAX = 16 * MIB;

export interface KnownAnswers {
  /** How many commits a tip reaches. */
  readonly commitTotals: CommitTotals;
  readonly knownFolders: KnownFolders;
  readonly knownPathHistories: KnownPathHistories;
  readonly knownAheadBehind: AheadBehindContext['knownAheadBehind'];
  readonly knownCommitSeconds: KnownCommitSeconds;
  readonly knownPushes: KnownPushes;
  readonly knownComparisons: KnownComparisons;
  readonly knownDiffs: KnownDiffs;
  readonly knownFiles: KnownFiles;
  readonly knownSearches: KnownSearches;
  readonly knownBlames: KnownBlames;
  readonly knownLines: KnownLines;
}

/** What a repository takes beside the marks of its commits. */
const EMPTY_BYTES = 16_384;
/** Commits whose history was counted. Internal: what is not kept is counted again. */
const COMMIT_TOTALS_MAX = 10_000;

export function createKnownAnswers(): KnownAnswers {
  return { ...knownOfCommits(), ...knownOfFiles() };
}

type OfFiles = 'knownFolders' | 'knownPathHistories' | 'knownFiles' | 'knownSearches' | 'knownBlames';

function knownOfCommits(): Omit<KnownAnswers, OfFiles> {
  const totals = countedCache('commit_totals', 'entries', new LRUCache<ObjectId, number>({ max: COMMIT_TOTALS_MAX }));
  const pushes = countedCache(
    'known_pushes',
    'memory',
    new LRUCache<RepositoryId, PushedCommits>({
      maxSize: KNOWN_PUSHES_BYTES_MAX,
      sizeCalculation: ({ marks }) => marks.memoryBytes + EMPTY_BYTES,
    }),
  );
  const aheadBehind = countedCache(
    'known_ahead_behind',
    'entries',
    new LRUCache<string, AheadBehind>({ max: KNOWN_APART_MAX }),
  );
  const seconds = countedCache(
    'known_commit_seconds',
    'entries',
    new LRUCache<ObjectId, number>({ max: KNOWN_COMMIT_DATES_MAX }),
  );
  const comparisons = countedCache(
    'known_comparisons',
    'entries',
    new LRUCache<string, KnownComparison>({
      maxSize: KNOWN_COMPARISONS_COMMITS_MAX,
      sizeCalculation: ({ ids }) => ids.length + 1,
    }),
  );
  const diffs = countedCache(
    'known_diffs',
    'memory',
    new LRUCache<string, Diff>({ maxSize: KNOWN_DIFFS_BYTES_MAX, sizeCalculation: bytesOf }),
  );
  const lines = countedCache(
    'known_lines',
    'memory',
    new LRUCache<ObjectId, LineIndex>({
      maxSize: KNOWN_LINES_BYTES_MAX,
      sizeCalculation: ({ offsets }) => 8 * offsets.length + 2 * ID_BYTES,
    }),
  );
  return {
    commitTotals: { ...shown(totals), underWay: new Map() },
    knownPushes: { ...shown(pushes), underWay: new Map() },
    knownAheadBehind: shown(aheadBehind),
    knownCommitSeconds: shown(seconds),
    knownComparisons: shown(comparisons),
    knownDiffs: shown(diffs),
    knownLines: shown(lines),
  };
}

function knownOfFiles(): Pick<KnownAnswers, OfFiles> {
  const folders = countedCache(
    'known_folders',
    'memory',
    new LRUCache<string, KnownFolder>({
      maxSize: KNOWN_FOLDERS_BYTES_MAX,
      sizeCalculation: folderBytes,
    }),
  );
  const histories = countedCache(
    'known_paths',
    'memory',
    new LRUCache<string, KnownPathHistory>({
      maxSize: KNOWN_PATHS_BYTES_MAX,
      sizeCalculation: ({ ids, before }, key) => textBytes(key) + ids.length * ID_BYTES + (before?.path.length ?? 0),
    }),
  );
  const files = countedCache(
    'known_files',
    'memory',
    new LRUCache<string, KnownList>({
      maxSize: KNOWN_FILES_BYTES_MAX,
      sizeCalculation: ({ list }, key) => textBytes(key) + (list?.memoryBytes ?? 0),
    }),
  );
  const searches = countedCache(
    'known_searches',
    'memory',
    new LRUCache<string, KnownSearch>({ maxSize: KNOWN_SEARCHES_BYTES_MAX, sizeCalculation: searchBytes }),
  );
  const blames = countedCache(
    'known_blames',
    'memory',
    new LRUCache<string, Blame>({
      maxSize: KNOWN_BLAMES_BYTES_MAX,
      sizeCalculation: (blame, key) => textBytes(key) + blameBytes(blame),
    }),
  );
  return {
    knownFolders: shown(folders),
    knownPathHistories: shown(histories),
    knownFiles: { ...shown(files), underWay: new Map() },
    knownSearches: shown(searches),
    knownBlames: { ...shown(blames), underWay: new Map() },
  };
}

/** What use cases see of a cache. */
function shown<Key, Value>(cache: Cache<Key, Value>): Pick<Cache<Key, Value>, 'get' | 'set'> {
  return { get: (key) => cache.get(key), set: (key, value) => cache.set(key, value) };
}

interface Cache<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): void;
}

/** What an id takes, in a list or as a commit of an entry, and what an entry takes beside its name and its commit. */
const ID_BYTES = 64;
const ENTRY_BYTES = 160;

/** Names and paths are of any length: Git bounds neither. */
function folderBytes({ entries }: KnownFolder, key: string): number {
  let bytes = textBytes(key);
  for (const name of entries.keys()) bytes += textBytes(name) + ENTRY_BYTES + ID_BYTES;
  return bytes;
}

function textBytes(text: string): number {
  return 2 * text.length + ID_BYTES;
}

/** A match takes as much as an entry, and each of its lines a text. */
function searchBytes({ matches }: KnownSearch, key: string): number {
  let bytes = textBytes(key);
  for (const { path, text, before, after } of matches) {
    bytes += ENTRY_BYTES + path.length;
    for (const line of [text, ...before, ...after]) bytes += textBytes(line);
  }
  return bytes;
}

/** What objects and texts take in memory, about. */
const DIFF_FILE_BYTES = 500;
const DIFF_LINE_BYTES = 120;

function bytesOf({ files }: Diff): number {
  let bytes = DIFF_FILE_BYTES;
  for (const { hunks, path } of files) {
    bytes += DIFF_FILE_BYTES + path.length;
    for (const { lines } of hunks) {
      bytes += DIFF_FILE_BYTES;
      for (const { text } of lines) bytes += DIFF_LINE_BYTES + 2 * text.length;
    }
  }
  return bytes;
}

/** What a range takes, and a commit that brought lines, beside the paths. */
const BLAME_RANGE_BYTES = 80;
const BLAME_ORIGIN_BYTES = 600;

function blameBytes({ ranges, origins, pathsBytes }: Blame): number {
  return ranges.length * BLAME_RANGE_BYTES + origins.length * BLAME_ORIGIN_BYTES + pathsBytes;
}
