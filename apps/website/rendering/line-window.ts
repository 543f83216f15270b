/**
 * Chooses the lines of a long text that one page shows.
 *
 * Invariants: a page stays below the weight that its caller names; every line is on a page.
 */
export interface LineWindow {
  /** Numbers of lines, counted from 1; `to` is the last one shown. */
  readonly from: number;
  readonly to: number;
  readonly total: number;
}

/** The markup around one line: its number, its anchor and its cell. */
const LINE_OVERHEAD_BYTES = 50;

/** `from` is the first line wanted; `bytesMax` bounds the markup. At least one line is shown. */
export function lineWindow(lines: readonly string[], from: number, bytesMax: number): LineWindow {
  const first = Math.min(Math.max(1, from), Math.max(1, lines.length));
  let to = first - 1;
  let bytes = 0;
  while (to < lines.length) {
    bytes += Buffer.byteLength(lines[to] ?? '') + LINE_OVERHEAD_BYTES;
    if (bytes > bytesMax && to >= first) break;
    to += 1;
  }
  return { from: first, to: Math.max(to, first), total: lines.length };
}
