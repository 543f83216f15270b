/**
 * Filters of partial clones: git-rev-list(1), `--filter`. Strata accepts only those that git's bitmaps make cheap.
 *
 * Invariants: an accepted filter means the same to upload-pack, which gets the text as received. Git reads numbers
 * as C does, so `010` means eight there: numbers with leading zeros are refused.
 */
import type { ProtocolRefusal } from './pkt-line.ts';
import { excerpt } from './safe-line.ts';

/** The depth of the filter `tree:<depth>`: upload-pack gets it too, as uploadpackfilter.tree.maxDepth. */
const FETCH_TREE_DEPTH_MAX = 16;

export type ObjectFilter =
  | { readonly kind: 'blob:none' }
  /** Omits blobs of `sizeBytes` bytes or more. */
  | { readonly kind: 'blob:limit'; readonly sizeBytes: number }
  /** Omits blobs and trees at depth `depth` or deeper; a commit's own tree has depth 0. */
  | { readonly kind: 'tree'; readonly depth: number };

const SIZE = /^blob:limit=(0|[1-9]\d*)([kmg]?)$/i;
const DEPTH = /^tree:(0|[1-9]\d*)$/;
/** Digits of a refused depth that the message shows. Internal: the depth is refused whatever its length. */
const DEPTH_SHOWN_DIGITS_MAX = 20;
const UNITS: { readonly [suffix: string]: number } = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** Parses `blob:none`, `blob:limit=<n>[kmg]` or `tree:<depth>` up to depth 16; refuses any other filter. */
export function parseObjectFilter(text: string): ObjectFilter | ProtocolRefusal<'filter-unsupported'> {
  if (text === 'blob:none') return { kind: 'blob:none' };
  const [, size, suffix] = SIZE.exec(text) ?? [];
  if (size !== undefined && suffix !== undefined) {
    const sizeBytes = Number(size) * (UNITS[suffix.toLowerCase()] ?? 1);
    if (Number.isSafeInteger(sizeBytes)) return { kind: 'blob:limit', sizeBytes };
    return { refused: 'filter-unsupported', detail: `filter size is too large: '${excerpt(text)}'` };
  }
  const depth = DEPTH.exec(text)?.[1];
  if (depth === undefined) {
    return { refused: 'filter-unsupported', detail: `filter '${excerpt(text)}' not supported` };
  }
  if (Number(depth) <= FETCH_TREE_DEPTH_MAX) return { kind: 'tree', depth: Number(depth) };
  const shown = depth.slice(0, DEPTH_SHOWN_DIGITS_MAX);
  const detail = `tree filter allows max depth ${FETCH_TREE_DEPTH_MAX}, but got ${shown}`;
  return { refused: 'filter-unsupported', detail };
}
