/** Deleting a storage bucket, which asks on a page of its own. */
import { deleteBucket, type FoundBucket } from '../../../core/use-cases/buckets/buckets.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, refusedForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { BUCKETS, bucketOf, bucketOrigin, pathOf } from './bucket-visit.ts';
import { placeText } from './words.ts';

export function deletionRoutes(site: Site): void {
  const { context } = site;
  site.page('/storage-buckets/:id/delete', async (visit) => {
    const found = await bucketOf(context, visit);
    return found === null ? notFound(visit) : ask(visit, found, NEW_FORM);
  });
  site.formBeyondQuota('/storage-buckets/:id/delete', async (visit) => {
    const found = await bucketOf(context, visit);
    if (found === null) return notFound(visit);
    const deleted = await deleteBucket(context, await bucketOrigin(visit), found.bucket.id);
    if (!('refused' in deleted)) return redirectTo(BUCKETS, 'The storage bucket is deleted.');
    if (deleted.refused.code === 'storage-bucket-not-found') return notFound(visit);
    return ask(visit, found, refusedForm(deleted.refused, {}));
  });
}

function ask(
  visit: PersonVisit,
  { bucket, settings, isDefault }: FoundBucket,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const { id, name } = bucket;
  const title = `Delete ${name}`;
  const content = html`<h1>${title}</h1><p>This service forgets <b>${placeText(settings)}</b> and how to reach it. What is stored there stays there.</p><p>Deleted repositories whose layers are in it cannot be restored any more. This cannot be undone.</p>${
    isDefault && html`<p>New repositories are in the platform’s storage then.</p>`
  }${postForm(
    { action: pathOf(id, '/delete'), csrf: visit.csrf(), errors },
    html`<div class="row"><button class="button grave">Delete storage bucket</button><a class="button quiet" href="${pathOf(id)}">Cancel</a></div>`,
  )}`;
  return showPage(page(visit, { title: `${title} · Storage buckets`, width: 'narrow' }, content), status, headers);
}
