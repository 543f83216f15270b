/** Pages of a list: a page is described by the number of items before it. */

export interface Page {
  /** How many items of the list are before the page. */
  readonly offset: number;
  readonly limit: number;
}

export interface PageOf<Item> {
  readonly items: readonly Item[];
  /** How many items the whole list has. */
  readonly total: number;
}

/** Returns the page of a number, counted from 0. A very large offset is cut so that it stays a safe integer. */
export function pageNumbered(number: number, limit: number): Page {
  return { offset: Math.min(number * limit, Number.MAX_SAFE_INTEGER - limit), limit };
}

/** Returns whether the list has items after the page. */
export function hasMore({ offset, limit }: Page, total: number): boolean {
  return offset + limit < total;
}
