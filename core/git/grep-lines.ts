/**
 * The output of `git grep -z -n --column -C2` over one tree or blob, as the lines that match and those around them.
 *
 * Invariants: the output is read as a stream, and of no line more is kept than a match shows: a file may be one line of
 * megabytes. Each record begins with the id of the tree or blob, so that neither a name nor git's own `--` between two
 * places is taken for something else.
 */
import { OBJECT_ID_DIGITS } from '../kernel/ids.ts';
import { ByteLines } from './byte-lines.ts';
import { FILE_LIST_PATH_BYTES_MAX } from './file-list.ts';
import { decodeUtf8Lossy } from './utf8.ts';

/** Lines around each match. */
export const GREP_CONTEXT_LINES = 2;
/** Bytes of a line that are kept, and how many of them stand before the match. */
export const GREP_LINE_BYTES_MAX = 400;
const BEFORE_MATCH_BYTES = 120;

export interface CodeMatch {
  /** From the root of what was searched; empty for a blob. */
  readonly path: Uint8Array;
  /** Counted from 1. */
  readonly line: number;
  /** Cut around the match, where the line is long; `…` stands for what is left out. */
  readonly text: string;
  /** Up to two lines before and after it, cut behind their beginning. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface GrepReading {
  /** Takes bytes of the output. Returns false when there are more matches than wanted: no more is needed then. */
  add(chunk: Uint8Array): boolean;
  /** Returns the matches so far. */
  end(): readonly CodeMatch[];
}

const NUL = 0;
const LINE_FEED = 0x0a;
const DASH = 0x2d;
/** Before the path stand the id that was searched and, of a tree, a colon. */
const COLON = 0x3a;
/** No longer number of a line or a column is in git's output. */
const LONGEST_NUMBER = 12;

interface MatchDraft extends CodeMatch {
  readonly before: string[];
  readonly after: string[];
}

/** A line of the output. `column` is null for one around a match. */
interface GrepLine {
  readonly path: Uint8Array;
  readonly line: number;
  readonly column: number | null;
  readonly text: string;
}

export function readGrep(matchesMax: number): GrepReading {
  const lines = new GrepLines();
  const matches: MatchDraft[] = [];
  let hasMore = false;
  /** The last lines of the file that is read, at most as many as stand around a match. */
  let recent: GrepLine[] = [];
  const take = (found: GrepLine): void => {
    const isSameFile = recent[0]?.path === found.path;
    recent = isSameFile ? recent.filter(({ line }) => line >= found.line - GREP_CONTEXT_LINES) : [];
    for (const match of matches.slice(-GREP_CONTEXT_LINES)) {
      const isBehind = match.path === found.path && match.line + match.after.length + 1 === found.line;
      if (isBehind && match.after.length < GREP_CONTEXT_LINES) match.after.push(found.text);
    }
    if (found.column !== null && matches.length === matchesMax) hasMore = true;
    else if (found.column !== null) {
      const { path, line, text } = found;
      matches.push({ path, line, text, before: recent.map((before) => before.text), after: [] });
    }
    recent.push(found);
  };
  return {
    add(chunk) {
      for (let at = 0; at < chunk.length && !hasMore; ) {
        at = lines.take(chunk, at);
        const line = lines.next();
        if (line !== null) take(line);
      }
      return !hasMore;
    },
    end: () => matches,
  };
}

type Part = 'name' | 'number' | 'column' | 'text' | 'separator';

/** Reads records: `<id>[:<path>] NUL <line> NUL [<column> NUL] <text> LF`, and `-- LF` between two places. */
class GrepLines {
  #part: Part = 'name';
  /** Before the path stand the id and a colon; no longer path is searched. */
  readonly #names = new ByteLines(NUL, OBJECT_ID_DIGITS + 1 + FILE_LIST_PATH_BYTES_MAX);
  #isInName = false;
  #path: Uint8Array = new Uint8Array();
  #digits = '';
  #line = 0;
  #text: LineWindow = new LineWindow(null);
  #column: number | null = null;
  #found: GrepLine | null = null;

  /** Reads a part of a record, or what the chunk has of it. Returns where to go on. */
  take(chunk: Uint8Array, at: number): number {
    switch (this.#part) {
      case 'name':
        return this.#takeName(chunk, at);
      case 'number':
      case 'column':
        return this.#takeDigit(chunk, at);
      case 'text':
        return this.#takeText(chunk, at);
      case 'separator': {
        const end = chunk.indexOf(LINE_FEED, at);
        if (end === -1) return chunk.length;
        this.#part = 'name';
        return end + 1;
      }
    }
  }

  /** Returns the line that the last `take` ended; null if it ended none. */
  next(): GrepLine | null {
    const found = this.#found;
    this.#found = null;
    return found;
  }

  #takeName(chunk: Uint8Array, at: number): number {
    if (!this.#isInName && chunk[at] === DASH) {
      this.#part = 'separator';
      return at;
    }
    const next = this.#names.take(chunk, at);
    const name = this.#names.next();
    this.#isInName = name === null;
    if (name === null) return next;
    const behindId = name.bytes.subarray(OBJECT_ID_DIGITS);
    const path = behindId[0] === COLON ? behindId.subarray(1) : behindId;
    // All lines of a file share its path.
    if (!isEqual(path, this.#path) || this.#line === 0) this.#path = path.slice();
    this.#digits = '';
    this.#part = 'number';
    return next;
  }

  #takeDigit(chunk: Uint8Array, at: number): number {
    const byte = chunk[at] ?? NUL;
    if (byte >= 0x30 && byte <= 0x39 && this.#digits.length < LONGEST_NUMBER) {
      this.#digits += String.fromCharCode(byte);
      return at + 1;
    }
    if (this.#part === 'number') {
      this.#line = Number(this.#digits);
      this.#digits = '';
      this.#part = 'column';
      return at + 1;
    }
    // A line around a match has no column: what was read is the start of its text.
    const isMatch = byte === NUL && this.#digits !== '';
    this.#column = isMatch ? Number(this.#digits) - 1 : null;
    this.#text = new LineWindow(this.#column);
    if (!isMatch) this.#text.add(Uint8Array.from(this.#digits, (digit) => digit.charCodeAt(0)));
    this.#part = 'text';
    return isMatch ? at + 1 : at;
  }

  #takeText(chunk: Uint8Array, at: number): number {
    const found = chunk.indexOf(LINE_FEED, at);
    const end = found === -1 ? chunk.length : found;
    this.#text.add(chunk.subarray(at, end));
    if (found === -1) return end;
    this.#found = { path: this.#path, line: this.#line, column: this.#column, text: this.#text.text() };
    this.#part = 'name';
    return found + 1;
  }
}

/** What is kept of a line: its beginning, or what is around the match. */
class LineWindow {
  readonly #start: number;
  readonly #kept: number[] = [];
  #length = 0;

  constructor(column: number | null) {
    this.#start = Math.max(0, (column ?? 0) - BEFORE_MATCH_BYTES);
  }

  add(bytes: Uint8Array): void {
    const from = Math.max(0, this.#start - this.#length);
    const room = GREP_LINE_BYTES_MAX - this.#kept.length;
    for (const byte of bytes.subarray(from, from + room)) this.#kept.push(byte);
    this.#length += bytes.length;
  }

  text(): string {
    const isCut = this.#start + this.#kept.length < this.#length;
    const bytes = Uint8Array.from(this.#kept);
    const first =
      this.#start === 0
        ? 0
        : Math.max(
            0,
            bytes.findIndex((byte) => (byte & 0xc0) !== 0x80),
          );
    const text = decodeUtf8Lossy(bytes.subarray(first));
    // The end of a cut line may lie within a character, and that of another one be written as on Windows.
    const shown = isCut ? `${text.replace(/\ufffd{1,3}$/, '')}…` : text.replace(/\r$/, '');
    return this.#start === 0 ? shown : `…${shown}`;
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at === a.length && a.length === b.length;
}
