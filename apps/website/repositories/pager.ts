/**
 * The pages of a list, and the links between them.
 *
 * Invariants: a page with fewer rows than usual begins where the usual one does, and the next page begins where it
 * ends, so that every row is on a page.
 */
import { PAGE_ROWS_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { hasMore, type Page, pageNumbered } from '../../../core/kernel/page.ts';
import { type Html, html, NOTHING } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { bytesOf } from '../layout/weight.ts';
import { numberAsked } from './page-request.ts';

export interface ListPage extends Page {
  /** How many rows a page of this list has, if none of them is very long. */
  readonly usual: number;
}

/** Returns the page that the address asks for. */
export function pageAsked(visit: Pick<Visit, 'url'>, usual: number): ListPage {
  const size = numberAsked(visit, 'size', usual);
  let limit = usual;
  while (limit > size && limit > 1) limit = smaller(limit);
  return { ...pageNumbered(numberAsked(visit, 'page', 0), limit), usual };
}

/** Each size divides the one before, so that a page of it begins where a larger one does. */
function smaller(limit: number): number {
  return limit % 2 === 0 ? limit / 2 : limit % 5 === 0 ? limit / 5 : 1;
}

export interface Fitting<Item> {
  readonly rows: readonly { readonly item: Item; readonly row: Html }[];
  /** The page that these rows are. */
  readonly page: ListPage;
}

/** Makes the rows of a page; fewer than the page has if they take too many bytes. */
export function rowsWithin<Item>(
  items: readonly Item[],
  page: ListPage,
  rowOf: (item: Item) => Html,
  bytesMax = PAGE_ROWS_BYTES_MAX,
): Fitting<Item> {
  const rows: { readonly item: Item; readonly row: Html }[] = [];
  // The lengths of the rows up to each. Those behind the first that is too much are on no page of this size.
  const sums: number[] = [];
  for (const item of items) {
    const row = rowOf(item);
    rows.push({ item, row });
    sums.push((sums.at(-1) ?? 0) + bytesOf(row));
    if ((sums.at(-1) ?? 0) > bytesMax) break;
  }
  let { limit } = page;
  while (limit > 1 && (sums[Math.min(limit, sums.length) - 1] ?? 0) > bytesMax) limit = smaller(limit);
  return { rows: rows.slice(0, limit), page: { ...page, limit } };
}

export interface PagerOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** False if the list has at least `total` items. */
  readonly isExact?: boolean;
}

/** Pages are counted from 0 in the query `page`. */
export function pager(address: string, page: ListPage, total: number, options: PagerOptions = {}): Html {
  const { query = {}, isExact = true } = options;
  const number = Math.floor(page.offset / page.limit);
  if (number === 0 && !hasMore(page, total)) return NOTHING;
  const size = page.limit === page.usual ? {} : { size: String(page.limit) };
  const link = (to: number, label: string, rel: string): Html => {
    const [path = '', known = ''] = address.split('?', 2);
    const search = new URLSearchParams(Object.entries({ ...query, page: String(to), ...size }));
    for (const [name, value] of new URLSearchParams(known)) search.append(name, value);
    return html`<a class="button" rel="${rel}" href="${path}?${search.toString()}">${label}</a>`;
  };
  const last = Math.min(page.offset + page.limit, total);
  const range = last > page.offset ? `${page.offset + 1}–${last}` : 'Nothing here';
  return html`<nav class="row pager" aria-label="Pages">${number > 0 && link(number - 1, 'Previous', 'prev')}<span class="soft">${range}${
    isExact && ` of ${total.toLocaleString('en-US')}`
  }</span>${hasMore(page, total) && link(number + 1, 'Next', 'next')}</nav>`;
}

/** Returns the title of one page of a list: of those behind the first with its number. */
export function numberedTitle(title: string, { offset, limit }: ListPage): string {
  return offset === 0 ? title : `${title}, page ${Math.floor(offset / limit) + 1}`;
}
