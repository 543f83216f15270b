/** Links to the pages before and after one. */
import { hasMore, type Page } from '../../../core/kernel/page.ts';
import { html, type Html, NOTHING } from '../layout/html.ts';

export interface PagerOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** False if the list has at least `total` items. */
  readonly isExact?: boolean;
}

/** `address` is without a query; pages are counted from 0 in the query `page`. */
export function pager(address: string, page: Page, total: number, options: PagerOptions = {}): Html {
  const { query = {}, isExact = true } = options;
  const number = Math.floor(page.offset / page.limit);
  if (number === 0 && !hasMore(page, total)) return NOTHING;
  const link = (to: number, label: string, rel: string): Html => {
    const search = new URLSearchParams({ ...query, page: String(to) }).toString();
    return html`<a class="button" rel="${rel}" href="${address}?${search}">${label}</a>`;
  };
  const last = Math.min(page.offset + page.limit, total);
  const range = last > page.offset ? `${page.offset + 1}–${last}` : 'Nothing here';
  return html`<nav class="row pager" aria-label="Pages">${number > 0 && link(number - 1, 'Previous', 'prev')}<span class="soft">${range}${
    isExact && ` of ${total.toLocaleString('en-US')}`
  }</span>${hasMore(page, total) && link(number + 1, 'Next', 'next')}</nav>`;
}
