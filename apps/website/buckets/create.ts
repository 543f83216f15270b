/** Making a storage bucket: first the provider is chosen, then its form filled in. */
import { createBucket } from '../../../core/use-cases/buckets/buckets.ts';
import { type PlanRoom, planRoom } from '../../../core/use-cases/metering/account-usage.ts';
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
  BUCKET_KINDS,
  type BucketKind,
  bucketFields,
  type EnteredBucket,
  enteredIn,
  kindNamed,
  newBucketEntered,
  parseBucket,
  refusedBucket,
} from './bucket-form.ts';
import { BUCKETS, bucketOrigin, pathOf } from './bucket-visit.ts';

const CREATE = `${BUCKETS}/create`;

export function createRoutes(site: Site): void {
  const { context } = site;
  site.page(CREATE, async (visit) => showKinds(visit, await planRoom(context, visit.person.account)));
  site.page(`${CREATE}/:kind`, async (visit) => {
    const kind = kindNamed(visit.params['kind'] ?? '');
    return kind === null ? notFound(visit) : showForm(visit, kind, newBucketEntered(kind), NEW_FORM);
  });
  site.form(`${CREATE}/:kind`, async (visit, fields) => {
    const kind = kindNamed(visit.params['kind'] ?? '');
    if (kind === null) return notFound(visit);
    const entered = enteredIn(fields);
    const wanted = parseBucket(kind, entered, true);
    if ('errors' in wanted) return showForm(visit, kind, entered, wrongForm(wanted.errors));
    const { name, is_default: isDefault } = wanted;
    const bucket = { name, isDefault, settings: wantedSettings(wanted) };
    const created = await createBucket(context, await bucketOrigin(visit), bucket);
    if ('refused' in created) return showForm(visit, kind, entered, refusedBucket(created.refused));
    return redirectTo(
      pathOf(created.bucket.id),
      'The storage bucket is created. Verify it before repositories use it.',
    );
  });
}

function showKinds(visit: PersonVisit, room: PlanRoom | null): SiteAnswer {
  const links = Object.entries(BUCKET_KINDS).map(
    ([name, { title }]) => html`<li><a href="${CREATE}/${name}">${title}</a></li>`,
  );
  // The plan decides before a form is filled.
  const kinds =
    room?.takesBuckets === false
      ? html`<p class="note">Your plan, ${room.plan}, takes no storage buckets. Repositories are in the platform’s storage.</p><div class="row"><a class="button quiet" href="${BUCKETS}">Storage buckets</a></div>`
      : html`<p>Where is it? The <a href="${BUCKETS}/setup">setup guide</a> says what to prepare there.</p><ul class="box links">${links}</ul>`;
  const content = html`<h1>New storage bucket</h1>${kinds}`;
  return showPage(page(visit, { title: 'New storage bucket', width: 'narrow' }, content));
}

function showForm(
  visit: PersonVisit,
  kind: BucketKind,
  entered: EnteredBucket,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const title = `New bucket: ${kind.title}`;
  const content = html`<h1>${title}</h1><p class="soft">The <a href="${BUCKETS}/setup">setup guide</a> says what to prepare first.</p>${postForm(
    { csrf: visit.csrf(), errors },
    html`${bucketFields(kind, entered, errors, true)}<div class="row"><button class="button main">Create storage bucket</button><a class="button quiet" href="${BUCKETS}">Cancel</a></div>`,
  )}`;
  return showPage(page(visit, { title, width: 'narrow' }, content), status, headers);
}
