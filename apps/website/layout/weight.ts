/**
 * How many bytes parts of a page take, as they are sent.
 *
 * Invariants: a page that shows no file, blame, README or diff stays below `PAGE_BYTES_MAX`, whatever names and texts
 * it shows: a list shows fewer rows instead, and the rest is on the next page. The others have the bounds of
 * rendering/weight.ts.
 */
import type { Html } from './html.ts';

/** The bytes of a page that is not long, without what it loads. Internal: no page reaches it. */
export const PAGE_BYTES_MAX = 60_000;

export function bytesOf(...parts: readonly Html[]): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part.markup()), 0);
}

/** `html` writes each of these characters as a reference of five bytes. */
const ESCAPED = /[&<>"'=]/g;
const ESCAPED_MORE_BYTES = 4;

/** Returns the bytes of a text in a page. */
export function textBytes(text: string): number {
  return Buffer.byteLength(text) + ESCAPED_MORE_BYTES * (text.match(ESCAPED)?.length ?? 0);
}

/** Returns the first of the rows that together take no more bytes; at least one. */
export function firstWithin(rows: readonly Html[], bytesMax: number): readonly Html[] {
  let count = rows.length;
  while (count > 1 && bytesOf(...rows.slice(0, count)) > bytesMax) count -= 1;
  return rows.slice(0, count);
}
