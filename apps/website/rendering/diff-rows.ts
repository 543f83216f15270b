/**
 * The markup of the lines of a diff, below one another or side by side, and how much of it there will be.
 *
 * Invariants: all text is escaped. Each line has an id of its own, by the number of its file in the diff, its side and
 * its number there: `d0L12` and `d0R12`. A row weighs at least as much as its markup has.
 */
import { ALL_LINES, type DiffLine, type Hunk } from '../../../core/git/diff/diff.ts';
import { markupOf, weighText } from './line-markup.ts';
import type { Runs } from './runs.ts';
import type { Weight } from './weight.ts';

export interface DiffRows {
  /** The number of the file in the diff. */
  readonly file: number;
  readonly hunks: readonly Hunk[];
  readonly isSplit: boolean;
  /** Where the lines of the file begin in a text with colours. */
  readonly start: number;
}

/** The lines of all files, each with its line feed, and their colours. */
export interface ColouredLines {
  readonly text: string;
  readonly runs: Runs;
}

interface Placed {
  readonly line: DiffLine;
  readonly text: string;
}

export function* diffRows(
  { file, hunks, isSplit, start }: DiffRows,
  markup: ReturnType<typeof markupOf> | null,
): Generator<string> {
  const isCrlf = hunks.every(({ lines }) => lines.every(endsInCrlf));
  let at = start;
  for (const hunk of hunks) {
    const head = headOf(hunk);
    if (head !== '') yield `<div class=hunk>${plain(head)}</div>`;
    const placed: Placed[] = [];
    for (const line of hunk.lines) {
      const end = at + line.text.length;
      const shownEnd = isCrlf && isWhole(line) ? end - 1 : end;
      const shown = markup === null ? plain(line.text.slice(0, shownEnd - at)) : markup({ start: at, end: shownEnd });
      placed.push({ line, text: `${shown}${line.cut ? '…' : ''}${line.ended ? '' : NO_LINE_END}` });
      at = end + 1;
      // Lines are yielded as they are made where their order allows it.
      if (!isSplit) yield unified(file, placed.pop() ?? { line, text: shown });
    }
    if (isSplit) yield* sideBySide(file, placed);
  }
}

/** A carriage return is shown where not all lines end in one: there the ends may be what changed. */
function endsInCrlf(line: DiffLine): boolean {
  return !isWhole(line) || line.text.endsWith('\r');
}

/** Lines without their ends are not asked how they end. */
function isWhole({ cut, ended }: DiffLine): boolean {
  return ended && !cut;
}

const NO_LINE_END = ' <span class=soft>(no line end)</span>';

function plain(text: string): string {
  return markupOf(text, null)({ start: 0, end: text.length });
}

/** The lines of a new or deleted file were not counted before the first of them. */
function headOf({ oldStart, oldLines, newStart, newLines, heading }: Hunk): string {
  if (oldLines === ALL_LINES || newLines === ALL_LINES) return '';
  return `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@ ${heading}`.trimEnd();
}

function numberLink(file: number, side: 'L' | 'R', number: number | null): string {
  if (number === null) return '';
  const id = `d${file}${side}${number}`;
  return `<a id=${id} href=#${id}>${number}</a>`;
}

const CLASSES = { context: '', added: ' class=added', deleted: ' class=removed' };

function unified(file: number, { line: { kind, oldNumber, newNumber }, text }: Placed): string {
  return `<div${CLASSES[kind]}>${numberLink(file, 'L', oldNumber)}${numberLink(file, 'R', newNumber)}${text}</div>`;
}

const GAP = '<div class=gap></div>';

function* sideBySide(file: number, lines: readonly Placed[]): Generator<string> {
  for (let at = 0; at < lines.length; ) {
    const first = lines[at];
    if (first?.line.kind === 'context') {
      yield sideOf(file, 'L', first) + sideOf(file, 'R', first);
      at += 1;
      continue;
    }
    const old = countOf(lines, at, 'deleted');
    const added = countOf(lines, at + old, 'added');
    for (let pair = 0; pair < Math.max(old, added); pair += 1) {
      const [left, right] = [lines[at + pair], lines[at + old + pair]];
      const leftSide = pair < old && left !== undefined ? sideOf(file, 'L', left) : GAP;
      yield leftSide + (pair < added && right !== undefined ? sideOf(file, 'R', right) : GAP);
    }
    at += old + added;
  }
}

function countOf(lines: readonly Placed[], from: number, kind: DiffLine['kind']): number {
  let count = 0;
  while (lines[from + count]?.line.kind === kind) count += 1;
  return count;
}

function sideOf(file: number, side: 'L' | 'R', { line, text }: Placed): string {
  const number = side === 'L' ? line.oldNumber : line.newNumber;
  return `<div${CLASSES[line.kind]}>${numberLink(file, side, number)}${text}</div>`;
}

/** The markup around a line: its element with a class, and one number with its link. */
const LINE_BYTES = 90;
const NUMBER_BYTES = 50;

/** Returns what a line takes, also where the other side of it is empty. */
export function weighDiffLine({ kind, text }: DiffLine, isSplit: boolean): Weight {
  const bytes = weighText(text);
  if (kind !== 'context') return { bytes: bytes + LINE_BYTES + GAP.length, elements: isSplit ? 3 : 2 };
  return isSplit
    ? { bytes: 2 * (bytes + LINE_BYTES), elements: 4 }
    : { bytes: bytes + LINE_BYTES + NUMBER_BYTES, elements: 3 };
}

export function weighHunk({ heading }: Hunk): Weight {
  return { bytes: weighText(heading) + 2 * LINE_BYTES, elements: 1 };
}
