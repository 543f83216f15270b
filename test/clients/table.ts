/**
 * The table of what each client did, in Markdown, aligned as the formatter wants it.
 *
 * Invariants: every client has a row, also one that was not run, and every operation a cell in it.
 */

export type Cell =
  | { readonly is: 'ok' }
  | { readonly is: 'cannot' }
  /** Refused as it must be, with what the client showed. */
  | { readonly is: 'refused'; readonly words: string }
  | { readonly is: 'failed'; readonly why: string };

export type Row =
  | { readonly client: string; readonly cells: readonly Cell[] }
  | { readonly client: string; readonly notRun: string };

/** A cell of the table stays readable; what failed is told whole below it. */
const WORDS_LENGTH_MAX = 160;

export function renderTable(operations: readonly string[], rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    if ('notRun' in row) return [row.client, `not run: ${shortened(row.notRun)}`, ...operations.slice(1).map(() => '')];
    return [row.client, ...row.cells.map(cellText)];
  });
  return alignedTable([['client', ...operations], ...lines]);
}

/** Renders a table in Markdown, aligned as the formatter wants it. The first line is its head. */
export function alignedTable(lines: readonly (readonly string[])[]): string {
  const [head = [], ...others] = lines;
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const padded = (line: readonly string[]) =>
    `| ${widths.map((width, column) => (line[column] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return `${[padded(head), rule, ...others.map(padded)].join('\n')}\n`;
}

/** How many cells were as they must be, and how many not; what a client cannot do is neither. */
export function countCells(rows: readonly Row[]): { readonly passed: number; readonly failed: number } {
  const cells = rows.flatMap((row) => ('cells' in row ? row.cells : []));
  const failed = cells.filter(({ is }) => is === 'failed').length;
  const passed = cells.filter(({ is }) => is === 'ok' || is === 'refused').length;
  return { passed, failed };
}

function cellText(cell: Cell): string {
  switch (cell.is) {
    case 'ok':
    case 'cannot':
      return cell.is;
    case 'refused':
      return shortened(cell.words);
    case 'failed':
      return 'FAILED';
  }
}

/** A bar would end the cell, and a bracket or a star may be taken for Markdown. */
function shortened(words: string): string {
  const short = words.length > WORDS_LENGTH_MAX ? `${words.slice(0, WORDS_LENGTH_MAX - 1)}…` : words;
  return short.replace(/[|<>[\]*_`\\]/g, (character) => `\\${character}`);
}
