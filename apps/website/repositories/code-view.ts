/**
 * The lines of a text on a page: all of them with their colours, all of them plain, or a window of them.
 *
 * Invariants: every line is on a page, with its number as the id, `L1` and so on. A page stays within its weight: the
 * colours are left out first. A line that no page could hold is cut, and the page says so.
 */
import { fileText } from '../../../core/git/file-text.ts';
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import {
  countLines,
  type Line,
  linesOf,
  weighLine,
  weighRuns,
  weighText,
  wholeCharacters,
} from '../rendering/line-markup.ts';
import type { Runs } from '../rendering/runs.ts';
import { addWeights, fitsInto, LONG_PAGE_ROOM, type Weight } from '../rendering/weight.ts';
import { shownAddress } from './addresses.ts';
import { momentField } from './as-of.ts';
import { numberAsked, type PageRequest } from './page-request.ts';
import { laterLines, type NumberedLine } from './rendered.ts';

/** Bytes of a file that are read for one window of its lines, where the file is larger. */
export const WINDOW_READ_BYTES_MAX = MIB;
/** How much of a line is shown where a text comes in windows, in UTF-16 code units. */
export const WINDOW_LINE_LENGTH_MAX = 256 * KIB;

/** A part of a text that begins with a whole line. */
export interface TextWindow {
  readonly text: string;
  /** The number of its first line. */
  readonly first: number;
  /** The lines of the whole text. */
  readonly total: number;
  /** Whether the text goes on. */
  readonly isOpen: boolean;
}

/** The text whole; null if a page cannot hold it. */
export function wholeView(text: string, runs: Runs | null): Html | null {
  const total = countLines(text);
  const line = weighLine(0, total);
  const plain = { bytes: weighText(text) + total * line.bytes, elements: total * line.elements };
  if (!fitsInto(plain, LONG_PAGE_ROOM)) return null;
  const colours = runs === null ? null : weighRuns(text, runs);
  const isColoured = colours !== null && fitsInto(addWeights(plain, colours), LONG_PAGE_ROOM);
  return linesBox(laterLines(text, isColoured ? runs : null, () => numbered(linesOf(text), 1)));
}

export function* numbered(lines: Iterable<Line>, first: number): Generator<NumberedLine> {
  let number = first;
  for (const line of lines) {
    yield { ...line, number, isCut: false };
    number += 1;
  }
}

/** Returns the part of a whole text from a line on. */
export function windowOf(text: string, from: number): TextWindow {
  const total = countLines(text);
  const first = Math.min(Math.max(1, from), Math.max(1, total));
  let start = 0;
  for (let number = 1; number < first; number += 1) start = text.indexOf('\n', start) + 1;
  return { text: text.slice(start), first, total, isOpen: false };
}

/** Returns the text of bytes that were read from a line on, and what its encoding is; null if they are no text. */
export function textOfWindow(bytes: Uint8Array): ReturnType<typeof fileText> {
  if (bytes.length < WINDOW_READ_BYTES_MAX) return fileText(bytes);
  const end = bytes.lastIndexOf(LINE_FEED);
  if (end !== -1) return fileText(bytes.subarray(0, end + 1));
  // The window ends within a line, and perhaps within a character, of at most four bytes.
  const texts = [0, 1, 2, 3].map((left) => fileText(bytes.subarray(0, bytes.length - left)));
  return texts.find((found) => found?.encoding === 'UTF-8') ?? texts[0] ?? null;
}

const LINE_FEED = 0x0a;

/** The lines of the window that a page holds, and the way to the others. */
export function windowView(asked: PageRequest, window: TextWindow): Content {
  const lines = linesWithin(window);
  const { first, total } = window;
  const last = lines.at(-1)?.number ?? first;
  const isCut = lines.some((line) => line.isCut);
  return html`${linesBox(laterLines(window.text, null, () => lines))}${
    isCut &&
    html`<p class="empty">A line of more than ${WINDOW_LINE_LENGTH_MAX.toLocaleString('en-US')} characters is cut here. Raw has it whole.</p>`
  }${windowPager(asked, { first, last, total })}`;
}

/** Returns the lines that a page holds; at least one. */
export function linesWithin({ text, first, isOpen }: TextWindow, room: Weight = LONG_PAGE_ROOM): NumberedLine[] {
  const lines: NumberedLine[] = [];
  let weight: Weight = { bytes: 0, elements: 0 };
  for (const line of numbered(linesOf(text), first)) {
    const end = wholeCharacters(text, Math.min(line.end, line.start + WINDOW_LINE_LENGTH_MAX));
    const isCut = end < line.end || (isOpen && line.next === text.length && text.at(-1) !== '\n');
    weight = addWeights(weight, weighLine(weighText(text, line.start, end), line.number));
    if (!fitsInto(weight, room) && lines.length > 0) break;
    lines.push({ ...line, end, isCut });
  }
  return lines;
}

function linesBox(lines: Html): Html {
  return html`<pre class="lines" tabindex="0"><code>${lines}</code></pre>`;
}

/** The names in the query of a window of lines. */
const FROM = 'from';

export function lineAsked({ visit }: PageRequest): number {
  return numberAsked(visit, FROM, 1);
}

interface ShownWindow {
  readonly first: number;
  readonly last: number;
  readonly total: number;
}

/** The script lines.js leads from here to a line that another window has. */
export function windowPager(
  { visit, repository }: PageRequest,
  { first, last, total }: ShownWindow,
  of: 'lines' | 'rows' = 'lines',
): Html {
  const view = visit.url.searchParams.get('view');
  const kept = view === null ? {} : { view };
  const link = (to: number): string => shownAddress(repository, '', { ...kept, [FROM]: String(to) });
  const [title, one] = of === 'lines' ? (['Lines', 'line'] as const) : (['Rows', 'row'] as const);
  return html`<form class="row pager" aria-label="${title}"${of === 'lines' && html` data-lines="${total}"`}>${
    first > 1 && html`<a class="button" href="${link(1)}">First ${of}</a>`
  }<span class="soft">${title} ${first}–${last} of ${total.toLocaleString('en-US')}</span>${
    last < total && html`<a class="button" rel="next" href="${link(last + 1)}">Next ${of}</a>`
  }<span class="end row"><label for="from">From ${one}</label><input class="short" id="from" name="${FROM}" inputmode="numeric" autocomplete="off" required>${
    view !== null && html`<input type="hidden" name="view" value="${view}">`
  }${momentField(repository)}<button class="button quiet">Go</button></span></form>`;
}
