/**
 * Finds lines of the files of a ref that hold a text, or that an expression matches.
 *
 * Invariants: a search is bounded in processor time, memory, time and matches, and says whether all files were
 * searched. What a whole search found is kept by what was searched, which never changes; one that its time cut is not,
 * since the next may find more. Links and binary files are not searched.
 */
import { ByteLines } from '../../git/byte-lines.ts';
import { FILE_LIST_PATH_BYTES_MAX, type FileList, filesUpTo } from '../../git/file-list.ts';
import { type CodeMatch, readGrep } from '../../git/grep-lines.ts';
import { decodeUtf8Lossy } from '../../git/utf8.ts';
import { KIB, MIB } from '../../kernel/byte-units.ts';
import { refuse } from '../../kernel/decider.ts';
import { type ObjectId, objectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { isBeyondBounds, ObjectDatabaseError, type ObjectReader } from '../../ports/object-database.ts';
import type { Bounded } from '../../ports/object-history.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type ContentsPath, type FoundEntry, findAtRef } from './entry-at-path.ts';
import { type KnownFiles, listFiles } from './find-files.ts';
import { bytesOf } from './list-tree.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import type { Root } from './resolve-ref.ts';

/** Matches of one search. */
export const SEARCH_MATCHES_MAX = 1_000;
/** How long git may search; its processor time is less. */
export const SEARCH_SPAN_MS = 10_000;
/** The length of what is searched for, in UTF-16 code units. */
export const SEARCH_TEXT_LENGTH_MAX = 1_000;
/**
 * Larger files are left out of a search that git could not hold them in memory for. Internal: the memory of git says
 * which search this is.
 */
const HELD_FILE_BYTES_MAX = 16 * MIB;
/**
 * How many of them are left out, and the bytes of their paths, which git gets as arguments. Internal: beyond either git
 * ends the search, which says that it is not complete.
 */
const LEFT_OUT_MAX = 200;
const LEFT_OUT_BYTES_MAX = 64 * KIB;

/** What one search found in a tree or a blob. Paths begin there. */
export interface KnownSearch {
  readonly matches: readonly CodeMatch[];
  readonly isComplete: boolean;
  readonly filesSearched: number;
}

/** A cache, bounded in memory. */
export interface KnownSearches {
  get(key: string): KnownSearch | undefined;
  set(key: string, found: KnownSearch): void;
}

export interface SearchCodeContext extends ObjectsContext {
  readonly knownFiles: KnownFiles;
  readonly knownSearches: KnownSearches;
}

export interface WantedSearch {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** Not empty, without NUL. */
  readonly text: string;
  /** Whether the text is an expression of PCRE. */
  readonly isRegex: boolean;
  /** The folder or file that is searched; null for a text that cannot name anything in a tree. */
  readonly path: ContentsPath | null;
  readonly page: Page;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface CodeSearch {
  /** The ref that the caller named, or the short name of the default branch. */
  readonly ref: string;
  /** In git's order of paths, then by line. Paths begin at the root. */
  readonly matches: PageOf<CodeMatch>;
  /** Whether all files were searched, and all their matches are here. */
  readonly isComplete: boolean;
  /** How many files were searched, at least; links do not count. */
  readonly filesSearched: number;
}

type Refused = { readonly refused: Refusal };

/**
 * Refused with `repository-without-commits`, `default-branch-missing`, `ref-not-found`, `path-not-found`,
 * `file-too-large`, `files-too-many`, `regex-unavailable` or `regex-invalid`.
 */
export async function searchCode(
  context: SearchCodeContext,
  repository: FoundRepository,
  { ref, path: asked, page, ...wanted }: WantedSearch,
): Promise<CodeSearch | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const at = await findAtRef(repository, reader, { ref, path: asked });
    if ('refused' in at) return at;
    const { resolved, path, located } = at;
    const root = rootAt(located);
    const search = { reader, repository, ...wanted };
    const found = root === null ? NOTHING_SEARCHED : await searchRoot(context, search, root);
    if ('refused' in found) return found;
    const { matches, ...rest } = found;
    const start = bytesOf(path);
    const items = matches.slice(page.offset, page.offset + page.limit).map((match) => {
      return { ...match, path: joined(start, match.path) };
    });
    return { ref: resolved.name, matches: { items, total: matches.length }, ...rest };
  });
}

/** Returns null for a link or a submodule. */
function rootAt({ type, id }: FoundEntry): Root | null {
  if (type === 'dir') return { type: 'tree', id };
  return type === 'file' ? { type: 'blob', id } : null;
}

const NOTHING_SEARCHED: KnownSearch = { matches: [], isComplete: true, filesSearched: 0 };

interface Search extends Pick<WantedSearch, 'text' | 'isRegex' | 'signal'> {
  readonly reader: ObjectReader;
  readonly repository: Pick<FoundRepository, 'id'>;
}

async function searchRoot(context: SearchCodeContext, search: Search, root: Root): Promise<KnownSearch | Refused> {
  const { reader, repository, text, isRegex, signal } = search;
  const key = `${repository.id} ${root.id} ${isRegex} ${text}`;
  const known = context.knownSearches.get(key);
  if (known !== undefined) return known;
  const list = root.type === 'blob' ? null : await listFiles(context, reader, repository.id, root.id, signal);
  if (list !== null && 'refused' in list) return list;
  const bounded = { signal, spanMs: SEARCH_SPAN_MS };
  // git compares single lines, and would take a text of several lines for several texts. No argument holds NUL.
  const canMatch = !/[\n\0]/.test(text);
  const fault = isRegex && canMatch ? await reader.search.regexFault(text, bounded) : null;
  if (fault !== null) {
    return refuse(
      fault.kind === 'invalid' ? { code: 'regex-invalid', reason: fault.reason } : { code: 'regex-unavailable' },
    );
  }
  const found = canMatch ? await linesOf(search, root, bounded) : NO_LINES;
  const filesSearched = searchedOf(found, list);
  const result = { matches: found.matches, isComplete: found.end === 'whole' && !found.leftText, filesSearched };
  // What was searched never changes, and neither do the first matches.
  if (found.end === 'whole' || found.end === 'matches') context.knownSearches.set(key, result);
  return result;
}

interface FoundLines {
  readonly matches: readonly CodeMatch[];
  /** `whole`: all files were searched; `matches`: there are more; else git reached a bound, `memory` its memory. */
  readonly end: 'whole' | 'matches' | 'memory' | 'bound';
  /** How many files were left out, and whether one of them is text. */
  readonly leftOut: number;
  readonly leftText: boolean;
}

const NO_LINES: FoundLines = { matches: [], end: 'whole', leftOut: 0, leftText: false };
const NO_FILES: LeftOut = { paths: [], hasText: false };

async function linesOf(search: Search, root: Root, bounded: Bounded): Promise<FoundLines> {
  const found = await readLines(search, root, NO_FILES, bounded);
  if (found.end !== 'memory' || root.type === 'blob') return found;
  const left = await largeFiles(search.reader, root.id, bounded);
  return left.paths.length === 0 ? found : readLines(search, root, left, bounded);
}

async function readLines(
  { reader, text, isRegex }: Search,
  root: Root,
  { paths, hasText }: LeftOut,
  bounded: Bounded,
): Promise<FoundLines> {
  const reading = readGrep(SEARCH_MATCHES_MAX);
  const left = { leftOut: paths.length, leftText: hasText };
  try {
    for await (const chunk of reader.search.lines(root.id, { text, isRegex, without: paths }, bounded)) {
      if (!reading.add(chunk)) return { matches: reading.end(), end: 'matches', ...left };
    }
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    const isMemory = error instanceof ObjectDatabaseError && error.code === 'object-too-large';
    return { matches: reading.end(), end: isMemory ? 'memory' : 'bound', ...left };
  }
  return { matches: reading.end(), end: 'whole', ...left };
}

interface LeftOut {
  readonly paths: readonly Uint8Array[];
  /** Whether one of them is text, or may be. */
  readonly hasText: boolean;
}

const NUL = 0;
const TAB = 0x09;
/** `<mode> <type> <id> <size>` and a tab. */
const HEAD = /^\d+ blob ([0-9a-f]+) +(\d+)\t/;
const HEAD_BYTES = 128;

/** Finds the files that git cannot hold. Most of them are binary, and nothing is missing without them. */
async function largeFiles(reader: ObjectReader, tree: ObjectId, bounded: Bounded): Promise<LeftOut> {
  const records = new ByteLines(NUL, HEAD_BYTES + FILE_LIST_PATH_BYTES_MAX);
  const paths: Uint8Array[] = [];
  const ids = new Set<ObjectId>();
  let bytesLeft = LEFT_OUT_BYTES_MAX;
  const take = (record: Uint8Array): void => {
    const pathAt = record.indexOf(TAB) + 1;
    const [, id, size] = HEAD.exec(decodeUtf8Lossy(record.subarray(0, pathAt))) ?? [];
    const path = record.slice(pathAt);
    if (id === undefined || Number(size) <= HELD_FILE_BYTES_MAX) return;
    if (paths.length === LEFT_OUT_MAX || path.length > bytesLeft) return;
    bytesLeft -= path.length;
    paths.push(path);
    ids.add(objectId(id));
  };
  try {
    for await (const chunk of reader.search.files(tree, { sizes: true }, bounded)) {
      for (let at = 0; at < chunk.length; ) {
        at = records.take(chunk, at);
        const record = records.next();
        if (record !== null) take(record.bytes);
      }
    }
    for (const id of ids) if (!(await reader.search.isBinary(id, bounded))) return { paths, hasText: true };
    return { paths, hasText: false };
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return { paths, hasText: true };
  }
}

/** If a search ended early, the files up to its last match are counted. */
function searchedOf({ matches, end, leftOut }: FoundLines, list: FileList | null): number {
  const last = matches.at(-1);
  if (list === null) return 1;
  if (end === 'whole') return list.files - leftOut;
  return last === undefined ? 0 : filesUpTo(list, last.path);
}

const SLASH = 0x2f;

function joined(folder: Uint8Array, path: Uint8Array): Uint8Array {
  if (folder.length === 0 || path.length === 0) return folder.length === 0 ? path : folder;
  const bytes = new Uint8Array(folder.length + 1 + path.length);
  bytes.set(folder);
  bytes[folder.length] = SLASH;
  bytes.set(path, folder.length + 1);
  return bytes;
}
