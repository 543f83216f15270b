/**
 * The page of one storage bucket: what it is, how its verification ended, which repositories depend on it, and its
 * errors.
 */
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { BucketErrorRow } from '../../../core/ports/bucket-error-lists.ts';
import { type FoundBucket, findBucket } from '../../../core/use-cases/buckets/buckets.ts';
import { listBucketErrors } from '../../../core/use-cases/buckets/list-bucket-errors.ts';
import { verifyBucket } from '../../../core/use-cases/buckets/verify-bucket.ts';
import { listRepositories } from '../../../core/use-cases/repositories/list-repositories.ts';
import { bucketErrorText } from '../../front-door/texts/bucket-errors.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { buttonForm, errorSummary } from '../layout/forms.ts';
import { type Html, html, NOTHING } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, refusedForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import { sizeText } from '../layout/sizes.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { BUCKETS, bucketOf, bucketOrigin, pathOf, viewerOf } from './bucket-visit.ts';
import { errorTable } from './errors.ts';
import { PROVIDERS, placeText, statusMark } from './words.ts';

/** The newest errors that the page shows; the page of all errors has the others. */
export const ERRORS_SHOWN_MAX = 10;
/** Repositories that the page names. */
export const REPOSITORIES_SHOWN_MAX = 100;

export function bucketRoutes(site: Site): void {
  const { context } = site;
  site.page('/storage-buckets/:id', async (visit) => {
    const found = await bucketOf(context, visit);
    return found === null ? notFound(visit) : showBucket(context, visit, found, NEW_FORM);
  });
  site.form('/storage-buckets/:id/verify', async (visit) => {
    const found = await bucketOf(context, visit);
    if (found === null) return notFound(visit);
    const { id } = found.bucket;
    const verified = await verifyBucket(context, await bucketOrigin(visit), id, visit.baseUrl);
    if (!('refused' in verified)) return redirectTo(pathOf(id), 'The storage bucket is verified.');
    return showUnverified(context, visit, found, verified.refused);
  });
}

/** Shows the bucket as it is now, with what the provider said, which is kept nowhere. */
async function showUnverified(
  context: SiteContext,
  visit: PersonVisit,
  { bucket }: FoundBucket,
  refusal: Refusal,
): Promise<SiteAnswer> {
  const now = await findBucket(context, viewerOf(visit), bucket.id);
  return 'refused' in now ? notFound(visit) : showBucket(context, visit, now, refusedForm(refusal, {}));
}

async function showBucket(
  context: SiteContext,
  visit: PersonVisit,
  found: FoundBucket,
  { errors, status, headers }: RefusedForm,
): Promise<SiteAnswer> {
  const { bucket, settings, isDefault } = found;
  const { id } = bucket;
  const wanted = { viewer: viewerOf(visit), bucket: id, page: { offset: 0, limit: ERRORS_SHOWN_MAX } };
  const listed = await listBucketErrors(context, { ...wanted, seen: visit.position });
  if ('refused' in listed) return notFound(visit);
  const head = html`<h1 class="title">${bucket.name}</h1><p>${statusMark(bucket.status)} ${PROVIDERS[settings.provider]}, ${placeText(settings)}${isDefault && ' · default for new repositories'}</p>`;
  const verify = buttonForm(
    { action: pathOf(id, '/verify'), csrf: visit.csrf() },
    html`<button class="button${bucket.status !== 'VERIFIED' && ' main'}">Verify</button>`,
  );
  const content = html`${errorSummary(errors)}<div class="row">${verify}<a class="button" href="${pathOf(id, '/edit')}">Edit</a><a class="button quiet" href="${BUCKETS}/setup">Setup guide</a><a class="button grave end" href="${pathOf(id, '/delete')}">Delete…</a></div>${facts(visit, found)}${await dependents(context, visit, found)}${recent(visit, found, listed.items, listed.total)}`;
  return showPage(page(visit, { title: `Storage bucket ${bucket.name}`, head }, content), status, headers);
}

function facts(visit: PersonVisit, { bucket, settings, conditionalWrites }: FoundBucket): Html {
  const { lastFailure, lastValidatedAt, createdAt } = bucket;
  const { roleArn, region, endpointUrl, accessKeyId } = settings;
  const fact = (name: string, value: string | null): Html =>
    value === null ? NOTHING : html`<dt>${name}</dt><dd><code>${value}</code></dd>`;
  return html`<section class="box"><header><h2>Settings</h2></header><div class="inside"><dl class="facts">${fact('Bucket', settings.bucketName)}${fact(
    'Prefix',
    settings.keyPrefix === '' ? null : settings.keyPrefix,
  )}${fact('Role', roleArn)}${fact('Endpoint', endpointUrl)}${fact('Region', region)}${fact('Access key', accessKeyId)}<dt>Last verified</dt><dd>${
    lastValidatedAt === null ? 'Never' : timeAgo(lastValidatedAt, visit.now)
  }</dd>${
    lastFailure !== null &&
    html`<dt>Last failure</dt><dd>${bucketErrorText(lastFailure)}, ${timeAgo(lastFailure.at, visit.now)}</dd>`
  }${
    conditionalWrites === false &&
    html`<dt>Conditional writes</dt><dd>No: of several writers of a new key more than one may succeed, so each looks first.</dd>`
  }<dt>Created</dt><dd>${timeAgo(createdAt, visit.now)}</dd></dl></div></section>`;
}

/** The sizes are here because they count against no quota. */
async function dependents(context: SiteContext, visit: PersonVisit, { repositories }: FoundBucket): Promise<Html> {
  if (repositories.length === 0) {
    return html`<section class="box"><header><h2>Repositories</h2></header><div class="inside"><p class="soft">No repository is in this bucket.</p></div></section>`;
  }
  const repositoryIds = repositories.slice(0, REPOSITORIES_SHOWN_MAX).map(({ id }) => id);
  const { items } = await listRepositories(context, {
    account: visit.person.account,
    selection: { scope: 'SELECTED_REPO', repositoryIds },
    seen: visit.position,
    page: { offset: 0, limit: REPOSITORIES_SHOWN_MAX },
  });
  const rows = items.map(
    ({ username, name, sizeBytes }) =>
      html`<li><a href="/${username}/${name}">${name}</a> <span class="soft">${sizeText(sizeBytes)}</span></li>`,
  );
  return html`<section class="box"><header><h2>Repositories</h2><span class="end soft">${repositories.length}</span></header><div class="inside"><ul>${rows}</ul><p class="soft">What is in the bucket counts against no quota of storage.</p>${
    repositories.length > repositoryIds.length && html`<p class="soft">The first ${repositoryIds.length}.</p>`
  }</div></section>`;
}

function recent(visit: PersonVisit, found: FoundBucket, errors: readonly BucketErrorRow[], total: number): Html {
  return html`<h2>Errors</h2>${errorTable(visit, errors, [found], { ofOne: true })}${
    total > errors.length && html`<p><a href="${BUCKETS}/errors">All errors</a></p>`
  }`;
}
