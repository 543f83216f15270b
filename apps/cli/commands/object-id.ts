/**
 * Ids of Git objects as the command line shows them.
 *
 * Invariants: this is the command line's only file that knows how long an id is. The server has its own,
 * core/kernel/ids.ts, of which the command line imports nothing.
 */

const OBJECT_ID_DIGITS = 40;
const SHOWN_DIGITS = 10;

/** The id that means "no object". */
export const NO_OBJECT = '0'.repeat(OBJECT_ID_DIGITS);

export function shortId(id: string, exact: boolean): string {
  if (exact) return id;
  return /^0+$/.test(id) ? '-' : id.slice(0, SHOWN_DIGITS);
}
