/** The list of storage buckets. */
import { STORAGE_BUCKETS_MAX } from '../../../core/kernel/limits.ts';
import { type FoundBucket, listBuckets } from '../../../core/use-cases/buckets/buckets.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { BUCKETS, pathOf, viewerOf } from './bucket-visit.ts';
import { PROVIDERS, placeText, statusMark } from './words.ts';

export function listRoutes({ context, page: add }: Site): void {
  add(BUCKETS, async (visit) => showList(visit, await listBuckets(context, viewerOf(visit))));
}

function showList(visit: PersonVisit, buckets: readonly FoundBucket[]): SiteAnswer {
  const isFull = buckets.length >= STORAGE_BUCKETS_MAX;
  const head = html`<div class="row"><h1 class="title">Storage buckets</h1>${!isFull && html`<a class="button main end" href="${BUCKETS}/create">New storage bucket</a>`}</div><p>Keep the layers of repositories in a bucket of your own: with Amazon S3, Cloudflare R2 or MinIO.</p>`;
  const links = html`<a class="button" href="${BUCKETS}/setup">Setup guide</a>${
    buckets.length > 0 && html`<a class="button" href="${BUCKETS}/errors">Errors</a>`
  }`;
  const content = html`${buckets.length > 0 ? table(buckets) : emptyList()}<div class="row">${links}<span class="soft">${buckets.length} of ${STORAGE_BUCKETS_MAX} storage buckets</span></div>${
    isFull &&
    html`<p class="soft">An account has at most ${STORAGE_BUCKETS_MAX} storage buckets. Delete one to create another.</p>`
  }`;
  return showPage(page(visit, { title: 'Storage buckets', head }, content));
}

function emptyList(): Html {
  return html`<div class="box empty"><h2>No storage buckets yet</h2><p>Everything is in the platform’s storage. The <a href="${BUCKETS}/setup">setup guide</a> says what to prepare in your cloud.</p></div>`;
}

function table(buckets: readonly FoundBucket[]): Html {
  return html`<section class="box"><div class="scroll" tabindex="0" role="group" aria-label="Storage buckets"><table><thead><tr><th>Name</th><th>Status</th><th class="wide">Provider</th><th class="wide">Bucket</th><th class="number">Repositories</th></tr></thead><tbody>
${buckets.map(rowOf)}</tbody></table></div></section>`;
}

function rowOf({ bucket, settings, isDefault, repositories }: FoundBucket): Html {
  return html`<tr><td class="wrap"><a href="${pathOf(bucket.id)}">${bucket.name}</a>${
    isDefault && html` <span class="soft">default</span>`
  }</td><td>${statusMark(bucket.status)}</td><td class="wide">${PROVIDERS[settings.provider]}</td><td class="wide wrap">${placeText(settings)}</td><td class="number">${repositories.length}</td></tr>
`;
}
