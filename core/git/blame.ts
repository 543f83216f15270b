/**
 * Which commit brought each line of a file, and the parser of what `git blame --incremental` prints about it: groups of
 * lines, in the order in which git finds out about them (git-blame(1), Incremental output).
 *
 * Invariants: ranges run without a gap from line 1, so that a line which git did not come to ends them. Paths are the
 * bytes that git quotes. Memory is bounded, whatever is in the history.
 */
import { MIB } from '../kernel/byte-units.ts';
import { OBJECT_ID_PATTERN, type ObjectId, objectId } from '../kernel/ids.ts';
import { DIFF_PATH_BYTES_MAX } from '../kernel/limits.ts';
import { ByteLines } from './byte-lines.ts';
import { nameKey } from './tree-bytes.ts';

/** Lines of a file of which it is found who brought them. */
export const BLAME_LINES_MAX = 100_000;
/** Bytes of the different paths that a file had, as far as they are kept. */
export const BLAME_PATHS_BYTES_MAX = MIB;

/** A commit that brought lines of the file. */
export interface BlameOrigin {
  readonly commit: ObjectId;
  /** The path of the file in this commit. */
  readonly path: Uint8Array;
  /** Where the file was before this commit; null if the commit brought the whole file. */
  readonly previous: { readonly commit: ObjectId; readonly path: Uint8Array } | null;
}

export interface BlameRange {
  /** The number of the first line, counted from 1. */
  readonly start: number;
  readonly count: number;
  readonly origin: BlameOrigin;
}

export interface Blame {
  /** In the order of lines; neighbours are of different origins. */
  readonly ranges: readonly BlameRange[];
  /** Those of all ranges, each once. Their paths are shared. */
  readonly origins: readonly BlameOrigin[];
  /** The bytes of the different paths. */
  readonly pathsBytes: number;
  /** False if lines follow the last range, which a limit left out. */
  readonly complete: boolean;
}

/** That of an empty file. */
export const NO_BLAME: Blame = { ranges: [], origins: [], pathsBytes: 0, complete: true };

export interface BlameParser {
  /** Takes the next bytes; returns false if it needs no more. */
  add(chunk: Uint8Array): boolean;
  /** Call it once, after the last bytes: `whole` if git ended by itself, `cut` if a limit stopped it. */
  end(how: 'whole' | 'cut'): Blame;
}

/** What git prints must be of at least one line more than `linesMax`, if the file has more. */
export function createBlameParser(linesMax = BLAME_LINES_MAX): BlameParser {
  return new Parser(linesMax);
}

const LINE_FEED = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** git quotes a byte as four characters at most. Longer lines are those of people's names and messages. */
const LINE_BYTES_KEPT = 4 * DIFF_PATH_BYTES_MAX + 100;
const GROUP = new RegExp(`^(${OBJECT_ID_PATTERN}) \\d+ (\\d+) (\\d+)$`);
const SHORT_LINE_BYTES = 100;
const PREVIOUS = 'previous ';
const FILENAME = 'filename ';
const PREVIOUS_START = new RegExp(`^${PREVIOUS}${OBJECT_ID_PATTERN} `);

/** A group of lines, until the path that ends it. */
interface Group {
  readonly commit: ObjectId;
  /** The index of the first line, counted from 0. */
  readonly first: number;
  readonly count: number;
  previous: BlameOrigin['previous'];
}

class Parser implements BlameParser {
  readonly #linesMax: number;
  readonly #lines = new ByteLines(LINE_FEED, LINE_BYTES_KEPT);
  readonly #origins: BlameOrigin[] = [];
  /** The numbers of origins, which are their indexes and 1, by commit and path. */
  readonly #numbers = new Map<string, number>();
  readonly #paths = new Map<string, Uint8Array>();
  #pathsBytes = 0;
  /** The number of each line's origin; 0 while it is not known. */
  #owners = new Int32Array(1_024);
  #group: Group | null = null;
  #enough = false;

  constructor(linesMax: number) {
    this.#linesMax = linesMax;
  }

  add(chunk: Uint8Array): boolean {
    for (let at = 0; at < chunk.length && !this.#enough; ) {
      at = this.#lines.take(chunk, at);
      const piece = this.#lines.next();
      if (piece !== null) this.#take(piece.bytes, piece.cut);
    }
    return !this.#enough;
  }

  end(how: 'whole' | 'cut'): Blame {
    const owners = this.#owners;
    const ranges: BlameRange[] = [];
    const end = Math.min(this.#linesMax, owners.length);
    let at = 0;
    while (at < end) {
      const owner = owners[at] ?? 0;
      const origin = this.#origins[owner - 1];
      if (origin === undefined) break;
      const first = at;
      while (at < end && owners[at] === owner) at += 1;
      ranges.push({ start: first + 1, count: at - first, origin });
    }
    const hasMore = (owners[this.#linesMax] ?? 0) !== 0;
    const complete = how === 'whole' && !this.#enough && !hasMore;
    return { ranges, origins: this.#origins, pathsBytes: this.#pathsBytes, complete };
  }

  #take(bytes: Uint8Array, cut: boolean): void {
    if (this.#group === null) {
      this.#group = groupOf(bytes);
      return;
    }
    const key = nameKey(bytes.subarray(0, FILENAME.length));
    if (key !== FILENAME && key !== PREVIOUS) return;
    // A path that is too long to be kept.
    if (cut) {
      this.#enough = true;
      return;
    }
    if (key === PREVIOUS) this.#group.previous = this.#previousOf(bytes);
    else {
      this.#endGroup(this.#group, this.#pathOf(bytes.subarray(FILENAME.length)));
      this.#group = null;
    }
  }

  #previousOf(bytes: Uint8Array): BlameOrigin['previous'] {
    const [start = ''] = PREVIOUS_START.exec(nameKey(bytes.subarray(0, SHORT_LINE_BYTES))) ?? [];
    if (start === '') throw new TypeError('git blame printed a previous commit without its id');
    const commit = objectId(start.slice(PREVIOUS.length, -1));
    return { commit, path: this.#pathOf(bytes.subarray(start.length)) };
  }

  /** Returns the path, of which there is one copy however often git prints it. */
  #pathOf(quoted: Uint8Array): Uint8Array {
    const key = nameKey(quoted);
    const known = this.#paths.get(key);
    if (known !== undefined) return known;
    const path = unquoted(quoted);
    this.#pathsBytes += path.length;
    if (this.#pathsBytes > BLAME_PATHS_BYTES_MAX) this.#enough = true;
    else this.#paths.set(key, path);
    return path;
  }

  #endGroup({ commit, first, count, previous }: Group, path: Uint8Array): void {
    if (this.#enough) return;
    // A line feed is in no id, and ends the first part of the key.
    const key = `${commit}\n${nameKey(path)}`;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#origins.push({ commit, path, previous });
      this.#numbers.set(key, number);
    }
    const end = Math.min(first + count, this.#linesMax + 1);
    if (end > this.#owners.length) this.#grow(end);
    this.#owners.fill(number, first, end);
  }

  #grow(lines: number): void {
    const larger = new Int32Array(Math.max(lines, Math.min(2 * this.#owners.length, this.#linesMax + 1)));
    larger.set(this.#owners);
    this.#owners = larger;
  }
}

function groupOf(bytes: Uint8Array): Group {
  const line = nameKey(bytes.subarray(0, SHORT_LINE_BYTES));
  const [, commit = '', first = '', count = ''] = GROUP.exec(line) ?? [];
  if (commit === '') throw new TypeError(`git blame printed the line ${JSON.stringify(line)}`);
  return { commit: objectId(commit), first: Number(first) - 1, count: Number(count), previous: null };
}

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Returns the bytes of a path that git quotes as in C, if it has to; git-config(1), core.quotePath. */
function unquoted(quoted: Uint8Array): Uint8Array {
  if (quoted[0] !== QUOTE) return new Uint8Array(quoted);
  const path = new Uint8Array(quoted.length);
  let length = 0;
  for (let at = 1; at < quoted.length - 1; at += 1) {
    let byte = quoted[at] ?? 0;
    if (byte === BACKSLASH) {
      const octal = /^[0-3][0-7]{2}/.exec(nameKey(quoted.subarray(at + 1, at + 4)));
      const escaped = quoted[at + 1] ?? 0;
      byte = octal === null ? (ESCAPES[String.fromCharCode(escaped)] ?? escaped) : Number.parseInt(octal[0], 8);
      at += octal === null ? 1 : octal[0].length;
    }
    path[length] = byte;
    length += 1;
  }
  return path.slice(0, length);
}
