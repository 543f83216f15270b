/** What went wrong with storage buckets: a table for their pages, and a page of all. */
import { PAGE_LIMIT_DEFAULT } from '../../../core/kernel/limits.ts';
import { hasMore, pageNumbered } from '../../../core/kernel/page.ts';
import type { BucketErrorRow } from '../../../core/ports/bucket-error-lists.ts';
import { type FoundBucket, listBuckets } from '../../../core/use-cases/buckets/buckets.ts';
import { listBucketErrors } from '../../../core/use-cases/buckets/list-bucket-errors.ts';
import { bucketErrorText } from '../../front-door/texts/bucket-errors.ts';
import { showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { BUCKETS, pathOf, viewerOf } from './bucket-visit.ts';

const PATH = `${BUCKETS}/errors`;

export function errorRoutes({ context, page: add }: Site): void {
  add(PATH, async (visit) => {
    const number = Number(/^\d{1,6}$/.exec(visit.url.searchParams.get('page') ?? '')?.[0] ?? 0);
    const viewer = viewerOf(visit);
    const buckets = await listBuckets(context, viewer);
    const wanted = pageNumbered(number, PAGE_LIMIT_DEFAULT);
    const listed = await listBucketErrors(context, { viewer, bucket: null, seen: visit.position, page: wanted });
    if ('refused' in listed) return notFound(visit);
    const pager = html`<div class="row">${number > 0 && html`<a class="button" href="${pageAddress(number - 1)}">Newer</a>`}${
      hasMore(wanted, listed.total) && html`<a class="button" href="${pageAddress(number + 1)}">Older</a>`
    }<a class="button quiet" href="${BUCKETS}">All storage buckets</a></div>`;
    const head = html`<h1 class="title">Errors of storage buckets</h1><p>The same error of the same repository is listed once in 15 minutes.</p>`;
    const content = html`${errorTable(visit, listed.items, buckets)}${pager}`;
    const title = `Errors of storage buckets${number === 0 ? '' : `, page ${number + 1}`}`;
    return showPage(page(visit, { title, head }, content));
  });
}

function pageAddress(number: number): string {
  return `${PATH}?page=${number}`;
}

/**
 * Names the repositories and buckets that still are among `buckets`; others are shown by their ids. On the page of one
 * bucket its name is left out.
 */
export function errorTable(
  visit: PersonVisit,
  errors: readonly BucketErrorRow[],
  buckets: readonly FoundBucket[],
  { ofOne = false }: { readonly ofOne?: boolean } = {},
): Html {
  if (errors.length === 0)
    return html`<div class="box empty"><h2>No errors yet</h2><p>Whatever fails in a bucket is listed here, with the step and the reason.</p></div>`;
  const names = new Map(buckets.map(({ bucket }) => [bucket.id, bucket.name]));
  const repositories = new Map(buckets.flatMap((found) => found.repositories.map(({ id, name }) => [id, name])));
  const rows = errors.map(
    (error) => html`<tr><td>${timeAgo(error.occurredAt, visit.now)}</td>${
      !ofOne &&
      html`<td class="wrap" data-label="Bucket"><a href="${pathOf(error.bucket)}">${names.get(error.bucket) ?? error.bucket}</a></td>`
    }<td data-label="During">${error.operation}</td><td class="wrap" data-label="What">${bucketErrorText(error)}</td><td data-label="Repository">${
      error.repository === null ? '—' : (repositories.get(error.repository) ?? error.repository)
    }</td></tr>
`,
  );
  return html`<section class="box"><div class="scroll" tabindex="0" role="group" aria-label="Errors"><table class="cards"><thead><tr><th>When</th>${!ofOne && html`<th>Bucket</th>`}<th>During</th><th>What</th><th>Repository</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}
