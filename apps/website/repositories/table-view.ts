/**
 * A file of comma- or tab-separated values as a table: all rows, or a window of them.
 *
 * Invariants: every row is on a page, and its number is that of its line, with the id of a line. A page stays within
 * its weight.
 */
import { type Content, html } from '../layout/html.ts';
import { turnsOf } from '../layout/turns.ts';
import { type CsvRow, csvRows, weighRow } from '../rendering/csv-rows.ts';
import { addWeights, fitsInto, LONG_PAGE_ROOM, type Weight } from '../rendering/weight.ts';
import { lineAsked, windowPager } from './code-view.ts';
import type { PageRequest } from './page-request.ts';
import { laterRows } from './rendered.ts';

/** What a cell takes in memory beside its text, about. */
const CELL_HELD_BYTES = 64;

interface RowWindow {
  readonly head: CsvRow;
  readonly rows: readonly CsvRow[];
  /** The rows of the whole table, without the head, and the number of the first that is shown. */
  readonly total: number;
  readonly first: number;
}

/** Null for a text that is no table, or of whose rows a page cannot hold one. */
export async function tableView(asked: PageRequest, text: string, separator: string): Promise<Content> {
  const window = await windowOfRows(text, separator, { from: lineAsked(asked), signal: asked.visit.signal });
  if (window === null) return null;
  const { head, rows, first, total } = window;
  const last = first + rows.length - 1;
  const cells = rows.reduce((sum, row) => sum + row.cells.length, 0);
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table class="values">${laterRows(
    2 * text.length + CELL_HELD_BYTES * cells,
    head,
    () => rows,
  )}</table></div>${(first > 1 || last < total) && windowPager(asked, { first, last, total }, 'rows')}`;
}

/** Returns the rows from one on, counted from 1 without the head, as many as a page holds. */
export async function windowOfRows(
  text: string,
  separator: string,
  {
    from,
    signal,
    room = LONG_PAGE_ROOM,
  }: { readonly from: number; readonly signal: AbortSignal; readonly room?: Weight },
): Promise<RowWindow | null> {
  const turn = turnsOf(signal);
  let head: CsvRow | null = null;
  let weight: Weight = { bytes: 0, elements: 0 };
  let isFull = false;
  let total = 0;
  /** The last row, for who asks for one beyond it. */
  let last: CsvRow | null = null;
  const rows: CsvRow[] = [];
  try {
    for (const row of csvRows(text, separator)) {
      await turn();
      if (head === null) {
        head = row;
        weight = weighRow(row);
        if (!fitsInto(weight, room)) return null;
        continue;
      }
      total += 1;
      last = row;
      if (isFull || total < from) continue;
      const more = addWeights(weight, weighRow(row));
      isFull = !fitsInto(more, room);
      if (isFull && rows.length === 0) return null;
      if (isFull) continue;
      weight = more;
      rows.push(row);
    }
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (head === null) return null;
  if (rows.length === 0 && last !== null) return { head, rows: [last], total, first: total };
  return { head, rows, total, first: Math.min(Math.max(1, from), Math.max(1, total)) };
}
