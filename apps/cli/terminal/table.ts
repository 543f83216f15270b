/**
 * Tables: aligned and cut to the terminal's width on a terminal; lines of tab-separated whole values elsewhere, for
 * other programs.
 *
 * Invariants: no line on a terminal is longer than the terminal is wide, however narrow it is.
 */
import type { Terminal } from './terminal.ts';
import { cutTo, showable, widthOf } from './text.ts';

export interface Column<Row> {
  readonly title: string;
  /** The text of a cell; `exact` is whole and machine-readable, for other programs. */
  readonly text: (row: Row, exact: boolean) => string;
  /** A column that keeps its width while others can give some of theirs. */
  readonly rigid?: true;
  readonly right?: true;
  readonly colour?: (row: Row) => 'red' | 'green' | 'yellow' | 'dim' | null;
}

const GAP = '  ';
/** No column is cut below this, unless all of them are. */
const COLUMN_WIDTH_MIN = 6;

/** Returns the table's lines, each with its line feed. */
export function tableText<Row>(terminal: Terminal, columns: readonly Column<Row>[], rows: readonly Row[]): string {
  if (!terminal.isInteractive) {
    const lines = rows.map((row) => columns.map(({ text }) => showable(text(row, true))).join('\t'));
    return lines.map((line) => `${line}\n`).join('');
  }
  const cells = rows.map((row) => columns.map(({ text }) => showable(text(row, false))));
  const natural = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...cells.map((line) => widthOf(line[index] ?? ''))),
  );
  const widths = fittedWidths(columns, natural, terminal.columns);
  const shown = columns.flatMap((column, index) => ((widths[index] ?? 0) > 0 ? [{ column, index }] : []));
  const line = (texts: readonly string[], row: Row | null): string => {
    const parts = shown.map(({ column, index }, at) => {
      const width = widths[index] ?? 0;
      const cut = cutTo(texts[index] ?? '', width);
      const padding = ' '.repeat(Math.max(0, width - widthOf(cut)));
      const colour = row === null ? 'dim' : (column.colour?.(row) ?? null);
      const coloured = colour === null ? cut : terminal.coloured(cut, colour);
      if (column.right === true) return padding + coloured;
      return at === shown.length - 1 ? coloured : coloured + padding;
    });
    return `${parts.join(GAP)}\n`;
  };
  const titles = columns.map(({ title }) => title);
  return [line(titles, null), ...rows.map((row, index) => line(cells[index] ?? [], row))].join('');
}

/** Takes width from the widest columns until the line fits; leaves out the last ones if nothing else helps. */
function fittedWidths<Row>(columns: readonly Column<Row>[], natural: readonly number[], total: number): number[] {
  const widths = [...natural];
  const shownCount = (): number => widths.filter((width) => width > 0).length;
  const lineWidth = (): number => widths.reduce((sum, width) => sum + width, 0) + GAP.length * (shownCount() - 1);
  const shrink = (may: (index: number) => boolean): void => {
    while (lineWidth() > total) {
      const widest = widths.reduce(
        (best, width, index) =>
          may(index) && width > COLUMN_WIDTH_MIN && width > (widths[best] ?? 0) - (best < 0 ? 0 : 0) ? index : best,
        -1,
      );
      if (widest < 0) return;
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
  };
  shrink((index) => columns[index]?.rigid !== true);
  for (let last = columns.length - 1; last > 0 && lineWidth() > total; last -= 1) {
    if (columns[last]?.rigid !== true) widths[last] = 0;
  }
  for (let last = columns.length - 1; last > 0 && lineWidth() > total; last -= 1) widths[last] = 0;
  if (lineWidth() > total) widths[0] = Math.max(1, total);
  return widths;
}

/** Returns lines of a name and its value, aligned on a terminal; names and values with a tab between elsewhere. */
export function fieldsText(terminal: Terminal, fields: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...fields.map(([name]) => widthOf(name)));
  const lines = fields.map(([name, value]) => {
    if (!terminal.isInteractive) return `${name}\t${showable(value)}\n`;
    return `${terminal.coloured(name.padEnd(width), 'dim')}  ${showable(value)}\n`;
  });
  return lines.join('');
}
