/** Bounds the paths on a page of files, matches or lines over REST: Git bounds none of them. */
import { MIB } from '../../kernel/byte-units.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Refusal } from '../../kernel/refusal.ts';

/** The paths on one page of files, matches or lines over REST. Each byte may take six in JSON. */
export const PAGE_PATHS_BYTES_MAX = 2 * MIB;

/** Refused with `page-paths-too-long` if the paths of the items are too long together; else null. */
export function pathsRefused(items: readonly { readonly path: Uint8Array }[]): { readonly refused: Refusal } | null {
  const bytes = items.reduce((sum, { path }) => sum + path.length, 0);
  return bytes > PAGE_PATHS_BYTES_MAX ? refuse({ code: 'page-paths-too-long' }) : null;
}
