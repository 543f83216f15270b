/** Links to the pages before and after one. */
import { hasMore, type Page } from '../../../core/kernel/page.ts';
import { html, type Html, NOTHING } from '../layout/html.ts';

/** `address` is without a query; pages are counted from 0 in the query `page`. */
export function pager(address: string, page: Page, total: number, query: Readonly<Record<string, string>> = {}): Html {
  const number = Math.floor(page.offset / page.limit);
  if (number === 0 && !hasMore(page, total)) return NOTHING;
  const link = (to: number, label: string, rel: string): Html =>
    html`<a class="button" rel="${rel}" href="${address}?${new URLSearchParams({ ...query, page: String(to) }).toString()}">${label}</a>`;
  const last = Math.min(page.offset + page.limit, total);
  return html`<nav class="row pager" aria-label="Pages">${number > 0 && link(number - 1, 'Back', 'prev')}<span class="soft">${
    page.offset + 1
  }–${last} of ${total}</span>${hasMore(page, total) && link(number + 1, 'On', 'next')}</nav>`;
}
