/** Deleted repositories: their list, their way back, and their purge. */
import { parseUuid, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { LostPlace } from '../../../core/kernel/refusal.ts';
import { findDeletion } from '../../../core/use-cases/repositories/deletions.ts';
import {
  type DeletedRepository,
  listDeletedRepositories,
} from '../../../core/use-cases/repositories/list-deleted-repositories.ts';
import { undeleteRepository } from '../../../core/use-cases/undo/undelete-repository.ts';
import { LOST_PLACES } from '../../front-door/texts/lost-places.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Fields, postForm, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound, showProblem } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { sizeText } from '../layout/sizes.ts';
import { spanText, timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { repositoryAddress } from './addresses.ts';
import { type Purged, purgeNamed, showPurge } from './purge.ts';

export const DELETED = '/settings/deleted-repositories';

export function deletedRoutes(site: Site): void {
  const { context } = site;
  site.page(DELETED, (visit) => showDeleted(context, visit));
  site.form(`${DELETED}/:id/restore`, (visit, fields) => undelete(context, visit, fields));
  site.page(`${DELETED}/:id/purge`, async (visit) => {
    const purged = await deletedOf(context, visit);
    return purged === null ? notFound(visit) : showPurge(context, visit, await visit.origin(null), purged);
  });
  site.formBeyondQuota(`${DELETED}/:id/purge`, async (visit, fields) => {
    const purged = await deletedOf(context, visit);
    if (purged === null) return notFound(visit);
    return purgeNamed({ context, visit, origin: await visit.origin(null), purged }, fields);
  });
}

/** Returns null for what is not a deleted repository of this person. */
async function deletedOf(context: SiteContext, visit: PersonVisit): Promise<Purged | null> {
  const id = parseUuid<RepositoryId>(visit.params['id'] ?? '');
  if (id === null) return null;
  const { account } = visit.person;
  const deletion = await findDeletion(context, account, id);
  if (deletion === null) return null;
  return {
    show: ({ title, content: shown, status }) =>
      showPage(page(visit, { title: `${title} · Deleted repositories`, width: 'narrow' }, shown), status),
    showProblem: (problem) => showProblem(visit, problem),
    id,
    name: deletion.owned.name,
    action: `${DELETED}/${id}/purge`,
    back: DELETED,
    what: html`<p>All of the deleted repository is removed for good. It cannot be undeleted any more.</p>`,
  };
}

interface Refused {
  readonly id: string;
  readonly name: string;
  readonly error: string;
}

async function showDeleted(
  context: SiteContext,
  visit: PersonVisit,
  refused: Refused | null = null,
): Promise<SiteAnswer> {
  const deleted = await listDeletedRepositories(context, visit.person.account);
  const content = html`<h1>Deleted repositories</h1><p>A deleted repository is kept for ${spanText(context.retentionMs)}, with all its history.</p>${
    deleted.length === 0
      ? html`<section class="box"><p class="empty">No repository was deleted lately.</p></section>`
      : deleted.map((one) => section(visit, one, refused))
  }<div class="row"><a class="button quiet" href="/${visit.person.username}">All repositories</a></div>`;
  return showPage(
    page(visit, { title: 'Deleted repositories', width: 'middle' }, content),
    refused === null ? 200 : 422,
  );
}

function section(visit: PersonVisit, deleted: DeletedRepository, refused: Refused | null): Html {
  const { id, name, deletedAt, expiresAt, sizeBytes, lost } = deleted;
  const own = refused?.id === id ? refused : null;
  const purge = html`<a class="button quiet" href="${DELETED}/${id}/purge">Purge…</a>`;
  const form = postForm(
    { action: `${DELETED}/${id}/restore`, csrf: visit.csrf(), errors: own === null ? {} : { form: own.error } },
    html`<div class="row"><button class="button main">Undelete</button>${purge}</div>`,
  );
  const renamed = postForm(
    { action: `${DELETED}/${id}/restore`, csrf: visit.csrf(), errors: own === null ? {} : { name: own.error } },
    html`${textField({ name: 'name', label: 'Another name', value: own?.name ?? '', error: own?.error, required: true, verbatim: true })}<div class="row"><button class="button main">Undelete under this name</button></div>`,
  );
  const unrestorable = (why: LostPlace) =>
    html`<p class="note">It cannot be undeleted. ${LOST_PLACES[why]}.</p><div class="row">${purge}</div>`;
  return html`<section class="box" aria-labelledby="deleted-${id}"><header><h2 id="deleted-${id}">${name}</h2><span class="end soft">${sizeText(
    sizeBytes,
  )}</span></header><div class="stack part"><p>Deleted ${timeAgo(deletedAt, visit.now)}, kept until ${expiresAt.slice(0, 10)}.</p>${
    lost !== null ? unrestorable(lost) : own === null ? form : renamed
  }</div></section>`;
}

async function undelete(context: SiteContext, visit: PersonVisit, fields: Fields): Promise<SiteAnswer> {
  const id = parseUuid<RepositoryId>(visit.params['id'] ?? '');
  if (id === null) return notFound(visit);
  const name = fields.text('name').trim();
  const undeleted = await undeleteRepository(context, await visit.origin(null), {
    id,
    name: name === '' ? null : name,
  });
  if (!('refused' in undeleted)) return redirectTo(repositoryAddress(undeleted), 'The repository is back.');
  if (undeleted.refused.code === 'repository-not-found') return notFound(visit);
  return showDeleted(context, visit, { id, name, error: `${refusalText(undeleted.refused)}.` });
}
