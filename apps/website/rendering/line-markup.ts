/**
 * The markup of the lines of a text, and how much of it there will be.
 *
 * Invariants: all text is escaped, and what hides or reorders it is shown. The markup of a line is balanced. A line
 * weighs at least as much as its markup has, so that what was chosen by weight fits.
 */

import { INVISIBLE_BYTES, isInvisible, markInvisible } from './invisible.ts';
import { classOf, lengthOfRun, type Runs, styleOfRun } from './runs.ts';
import type { Weight } from './weight.ts';

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapedText(text: string): string {
  return markInvisible(text).replace(/[&<>"]/g, (character) => ESCAPES[character] ?? '');
}

/** The element around a run: `<span class="word strong"></span>`. */
const RUN_BYTES = 35;

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** The bytes of each character of ASCII in markup. */
const ASCII_BYTES = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  return isInvisible(code) ? INVISIBLE_BYTES : (ESCAPES[character]?.length ?? 1);
});

/** Returns the bytes of a part of a text in markup, without elements; never too few. */
export function weighText(text: string, from = 0, to = text.length): number {
  let bytes = 0;
  for (let at = from; at < to; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x80) bytes += ASCII_BYTES[code] ?? 1;
    else if (isInvisible(code)) bytes += INVISIBLE_BYTES;
    else bytes += code < 0x800 ? 2 : 3;
  }
  return bytes;
}

/** Returns what runs add to their text: those of several lines have an element in each. */
export function weighRuns(text: string, runs: Runs): Weight {
  let elements = 0;
  let end = 0;
  let feed = text.indexOf('\n');
  for (const run of runs) {
    end += lengthOfRun(run);
    const more = styleOfRun(run) === 0 ? 0 : 1;
    elements += more;
    for (; feed !== -1 && feed < end; feed = text.indexOf('\n', feed + 1)) elements += more;
  }
  return { bytes: elements * RUN_BYTES, elements };
}

export interface Line {
  /** Where its text begins and ends in the whole text: without its line feed, and the carriage return before it. */
  readonly start: number;
  readonly end: number;
  /** Where the next line begins. */
  readonly next: number;
}

/** Yields the lines of a text. A line feed ends a line: nothing follows the last. */
export function* linesOf(text: string): Generator<Line> {
  for (let start = 0; start < text.length; ) {
    const feed = text.indexOf('\n', start);
    const next = feed === -1 ? text.length : feed + 1;
    const isWindows = feed > start && text.charCodeAt(feed - 1) === CARRIAGE_RETURN;
    yield { start, end: feed === -1 ? next : isWindows ? feed - 1 : feed, next };
    start = next;
  }
}

/** Returns how many lines a text has. */
export function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return text === '' || text.charCodeAt(text.length - 1) === LINE_FEED ? count : count + 1;
}

/** Returns a function that makes the markup of parts of a text. */
export function markupOf(text: string, runs: Runs | null): (part: Pick<Line, 'start' | 'end'>) => string {
  if (runs === null) return ({ start, end }) => escapedText(text.slice(start, end));
  const ends = endsOf(runs);
  return ({ start, end }) => {
    let markup = '';
    let index = indexAt(ends, start);
    for (let at = start; at < end; index += 1) {
      const upTo = Math.min(end, ends[index] ?? end);
      const shown = escapedText(text.slice(at, upTo));
      const style = styleOfRun(runs[index] ?? 0);
      markup += style === 0 ? shown : styled(shown, classOf(style));
      at = upTo;
    }
    return markup;
  };
}

function endsOf(runs: Runs): Uint32Array {
  let end = 0;
  return runs.map((run) => {
    end += lengthOfRun(run);
    return end;
  });
}

/** Returns the index of the run that has the character at this place. */
function indexAt(ends: Uint32Array, place: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ends[middle] ?? 0) > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

function styled(markup: string, name: string): string {
  return name.includes(' ') ? `<span class="${name}">${markup}</span>` : `<span class=${name}>${markup}</span>`;
}

/** The markup of a line's number, `<a id="L" href="#L"></a>` and a line feed, and how often it has the number. */
const NUMBER_BYTES = 26;
const NUMBERS = 3;

/** Returns what a line with its number takes. */
export function weighLine(textBytes: number, number: number): Weight {
  return { bytes: textBytes + NUMBER_BYTES + NUMBERS * String(number).length, elements: 1 };
}

/** Returns the beginning of a line, with its number, which links to itself. */
export function numberedLine(markup: string, number: number): string {
  return `<a id="L${number}" href="#L${number}">${number}</a>${markup}`;
}

/** How much of a line is made in one go, in UTF-16 code units. */
const PART_LENGTH = 16 * 1_024;

/** Returns the parts of a line, of which none divides a character. */
export function partsOf(text: string, { start, end }: Pick<Line, 'start' | 'end'>): Pick<Line, 'start' | 'end'>[] {
  const parts: Pick<Line, 'start' | 'end'>[] = [];
  for (let at = start; at < end; ) {
    const upTo = wholeCharacters(text, Math.min(end, at + PART_LENGTH));
    parts.push({ start: at, end: upTo });
    at = upTo;
  }
  return parts;
}

/** Returns the place, or the one before it where it would divide a character. */
export function wholeCharacters(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
