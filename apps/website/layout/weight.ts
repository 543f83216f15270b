/**
 * How many bytes and elements parts of a page take, as they are sent.
 *
 * Invariants: a page that shows no file, blame, README or diff stays below `PAGE_BYTES_MAX`, whatever names and texts it
 * shows: a list shows fewer rows instead, and the rest is on the next page. The others stay below `LONG_PAGE_BYTES_MAX`
 * and `LONG_PAGE_ELEMENTS_MAX`.
 */
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';
import type { Html } from './html.ts';

/** The bytes of a page that is not long, without what it loads. Internal: no page reaches it. */
export const PAGE_BYTES_MAX = 60_000;

/** What a person waits for, and a phone can hold: the bytes and the elements of a page that shows a file or a diff. */
export const LONG_PAGE_BYTES_MAX = 4 * MIB;
export const LONG_PAGE_ELEMENTS_MAX = 50_000;

/** How much markup something takes, or may take. */
export interface Weight {
  readonly bytes: number;
  readonly elements: number;
}

/** What a file or a diff may take of its page: the frame, its head and its links have the rest. */
export const LONG_PAGE_ROOM: Weight = {
  bytes: LONG_PAGE_BYTES_MAX - 128 * KIB,
  elements: LONG_PAGE_ELEMENTS_MAX - 1_000,
};

export function addWeights(a: Weight, b: Weight): Weight {
  return { bytes: a.bytes + b.bytes, elements: a.elements + b.elements };
}

export function fitsInto(weight: Weight, room: Weight): boolean {
  return weight.bytes <= room.bytes && weight.elements <= room.elements;
}

export function bytesOf(...parts: readonly Html[]): number {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part.markup()), 0);
}

/** Returns the weight of markup in which every `<` begins a tag. */
export function weighMarkup(markup: string): Weight {
  let elements = 0;
  for (let at = markup.indexOf('<'); at !== -1; at = markup.indexOf('<', at + 1)) {
    if (markup.charCodeAt(at + 1) !== SLASH) elements += 1;
  }
  return { bytes: Buffer.byteLength(markup), elements };
}

const SLASH = 0x2f;

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
