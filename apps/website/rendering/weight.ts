/**
 * How many bytes and elements a part of a long page takes, as it is sent.
 *
 * Invariants: a page that shows a file, a blame, a README or a diff stays below `LONG_PAGE_BYTES_MAX` and
 * `LONG_PAGE_ELEMENTS_MAX`.
 */
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';

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

/** Returns the weight of markup in which every `<` begins a tag. */
export function weighMarkup(markup: string): Weight {
  let elements = 0;
  for (let at = markup.indexOf('<'); at !== -1; at = markup.indexOf('<', at + 1)) {
    if (markup.charCodeAt(at + 1) !== SLASH) elements += 1;
  }
  return { bytes: Buffer.byteLength(markup), elements };
}

const SLASH = 0x2f;
