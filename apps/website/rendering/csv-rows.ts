/**
 * The rows of a text in CSV or TSV (RFC 4180), and their markup.
 *
 * Invariants: all text is escaped. Reading takes time in proportion to the text, whatever its quotation marks are. A
 * row weighs at least as much as its markup has.
 */

import { markupOf, weighText } from './line-markup.ts';
import type { Weight } from './weight.ts';

export interface CsvRow {
  /** The number of the line that it begins in. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** Returns what stands between cells, by the name of the file; null for a file that is no table. */
export function separatorOf(fileName: string): string | null {
  const extension = /\.([ct]sv|tab)$/i.exec(fileName)?.[1]?.toLowerCase();
  return extension === undefined ? null : extension === 'csv' ? ',' : '\t';
}

const QUOTE = '"';
const LINE_FEED = 10;

/** Yields the rows. Throws SyntaxError for a quotation that does not end. */
export function* csvRows(text: string, separator: string): Generator<CsvRow> {
  // A mark of the byte order is no part of the first cell.
  let at = text.startsWith('\ufeff') ? 1 : 0;
  let line = 1;
  const plain = separator === ',' ? /[^,\n]*/y : /[^\t\n]*/y;
  const restOfCell = (): string => {
    plain.lastIndex = at;
    const [rest = ''] = plain.exec(text) ?? [];
    at += rest.length;
    return text.charCodeAt(at) === LINE_FEED || at === text.length ? rest.replace(/\r$/, '') : rest;
  };
  while (at < text.length) {
    const cells: string[] = [];
    const row: CsvRow = { line, cells };
    for (let ends = false; !ends; ) {
      let cell = '';
      if (text[at] === QUOTE) {
        const parts: string[] = [];
        at += 1;
        for (let isOpen = true; isOpen; ) {
          const end = text.indexOf(QUOTE, at);
          if (end === -1) throw new SyntaxError('A quotation has no end');
          isOpen = text[end + 1] === QUOTE;
          parts.push(text.slice(at, isOpen ? end + 1 : end));
          at = isOpen ? end + 2 : end + 1;
        }
        cell = parts.join('');
        for (let feed = cell.indexOf('\n'); feed !== -1; feed = cell.indexOf('\n', feed + 1)) line += 1;
      }
      cells.push(cell + restOfCell());
      ends = text[at] !== separator;
      at += 1;
    }
    line += 1;
    yield row;
  }
}

/** The markup of a row beside its cells, and of a cell. */
const ROW_BYTES = 60;
const CELL_BYTES = 25;

export function weighRow({ cells, line }: CsvRow): Weight {
  const bytes = cells.reduce((sum, cell) => sum + weighText(cell) + CELL_BYTES, ROW_BYTES + 3 * String(line).length);
  return { bytes, elements: cells.length + 3 };
}

/** The first row names the columns. */
export function headMarkup(row: CsvRow): string {
  return `<thead><tr>${numberCell(row)}${row.cells.map((cell) => `<th scope=col>${escaped(cell)}</th>`).join('')}</tr></thead><tbody>`;
}

export function rowMarkup(row: CsvRow): string {
  return `<tr>${numberCell(row)}${row.cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`;
}

function numberCell({ line }: CsvRow): string {
  return `<td><a id=L${line} href=#L${line}>${line}</a></td>`;
}

function escaped(text: string): string {
  return markupOf(text, null)({ start: 0, end: text.length });
}
