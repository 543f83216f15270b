/** Changing a storage bucket. Its provider and the way in which it lets the service in stay as they are. */
import { changeBucket, type FoundBucket } from '../../../core/use-cases/buckets/buckets.ts';
import { wantedSettings } from '../../front-door/bucket-settings.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import {
  bucketFields,
  type EnteredBucket,
  enteredIn,
  enteredOf,
  kindOf,
  parseBucket,
  refusedBucket,
} from './bucket-form.ts';
import { bucketOf, bucketOrigin, pathOf } from './bucket-visit.ts';

export function editRoutes(site: Site): void {
  const { context } = site;
  site.page('/storage-buckets/:id/edit', async (visit) => {
    const found = await bucketOf(context, visit);
    return found === null ? notFound(visit) : showForm(visit, found, enteredOf(found), NEW_FORM);
  });
  site.form('/storage-buckets/:id/edit', async (visit, fields) => {
    const found = await bucketOf(context, visit);
    if (found === null) return notFound(visit);
    const entered = enteredIn(fields);
    const wanted = parseBucket(kindOf(found), entered, false);
    if ('errors' in wanted) return showForm(visit, found, entered, wrongForm(wanted.errors));
    const { secretAccessKey, ...shown } = wantedSettings(wanted);
    const kept = secretAccessKey === null || secretAccessKey === '';
    const changed = await changeBucket(context, await bucketOrigin(visit), found.bucket.id, {
      name: wanted.name,
      isDefault: wanted.is_default,
      settings: kept ? shown : { ...shown, secretAccessKey },
    });
    if ('refused' in changed) {
      if (changed.refused.code === 'storage-bucket-not-found') return notFound(visit);
      return showForm(visit, found, entered, refusedBucket(changed.refused));
    }
    const isPending = changed.bucket.status === 'PENDING_VERIFICATION';
    const text = `The storage bucket is changed.${isPending ? ' Verify it.' : ''}`;
    return redirectTo(pathOf(found.bucket.id), text);
  });
}

function showForm(
  visit: PersonVisit,
  found: FoundBucket,
  entered: EnteredBucket,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const { bucket, repositories } = found;
  const fixed =
    repositories.length > 0 &&
    html`<p class="note">Repositories depend on this bucket, so its place cannot change: the bucket, the prefix and the endpoint. The role and the keys can.</p>`;
  const content = html`<h1>Edit ${bucket.name}</h1>${fixed}<p class="soft">A change of anything but the name and the default has to be verified again.</p>${postForm(
    { action: pathOf(bucket.id, '/edit'), csrf: visit.csrf(), errors },
    html`${bucketFields(kindOf(found), entered, errors, false)}<div class="row"><button class="button main">Save changes</button><a class="button quiet" href="${pathOf(bucket.id)}">Cancel</a></div>`,
  )}`;
  return showPage(
    page(visit, { title: `Edit ${bucket.name} · Storage buckets`, width: 'narrow' }, content),
    status,
    headers,
  );
}
