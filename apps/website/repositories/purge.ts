/**
 * Purging, which asks on a page of its own that says how much it removes.
 *
 * Invariants: there is no way back, so the name is typed.
 */
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import { type Purge, planPurge, purgeRepository } from '../../../core/use-cases/undo/purge-repository.ts';
import type { Origin } from '../../front-door/admission.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound, showProblem } from '../layout/problems.ts';
import { sizeText } from '../layout/sizes.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { purgeAddress, repositoryAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';

/** What a page purges, and where it leads. */
export interface Purged {
  readonly id: RepositoryId;
  readonly name: string;
  readonly what: Html;
  readonly action: string;
  readonly back: string;
}

function living({ repository }: PageRequest): Purged {
  const home = repositoryAddress(repository);
  return {
    id: repository.id,
    name: repository.owned.name,
    action: purgeAddress(repository),
    back: `${home}/settings`,
    what: html`<p>Commits and files that no branch and no tag reaches now are removed for good, such as a secret that you pushed and forced away. Until then, whoever may read the repository can fetch them by their ids. What your branches and tags reach stays. Earlier states cannot be restored any more.</p>`,
  };
}

export async function askToPurge(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  return showPurge(context, visit, await visit.origin(repository), living(asked));
}

export async function purgeFromForm(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  return purgeNamed({ context, visit, origin: await visit.origin(repository), purged: living(asked) }, fields);
}

/** Shows what a purge would remove. */
export async function showPurge(
  context: SiteContext,
  visit: PersonVisit,
  origin: Origin,
  purged: Purged,
  fields: Fields = NO_FIELDS,
  error?: string,
): Promise<SiteAnswer> {
  const plan = await planPurge(context, origin, purged.id, visit.signal);
  if ('refused' in plan) return refusedPage(visit, plan.refused);
  const form = postForm(
    { action: purged.action, csrf: visit.csrf(), errors: error === undefined ? {} : { confirmation: error } },
    html`${textField({
      name: 'confirmation',
      label: `Type ${purged.name} to confirm`,
      value: fields.text('confirmation'),
      error,
      required: true,
      autocomplete: 'off',
      verbatim: true,
    })}<div class="row"><button class="button grave">Purge for good</button><a class="button quiet" href="${purged.back}">Cancel</a></div>`,
  );
  const title = `Purge ${purged.name}`;
  const { freedBytes, leftWithOwnerBytes: left } = plan;
  const content = html`<h1>${title}</h1>${purged.what}<p>It frees <strong>${sizeText(freedBytes)}</strong>, and it cannot be undone.</p>${
    left !== undefined && html`<p>${leftText(left)}</p>`
  }${form}`;
  return showPage(page(visit, { title, width: 'narrow' }, content), error === undefined ? 200 : 422);
}

interface PurgeAsked {
  readonly context: SiteContext;
  readonly visit: PersonVisit;
  readonly origin: Origin;
  readonly purged: Purged;
}

export async function purgeNamed({ context, visit, origin, purged }: PurgeAsked, fields: Fields): Promise<SiteAnswer> {
  if (fields.text('confirmation').trim() !== purged.name) {
    const error = `This is not the repository’s name, ${purged.name}`;
    return showPurge(context, visit, origin, purged, fields, error);
  }
  const done = await purgeRepository(context, origin, purged.id, visit.signal);
  return 'refused' in done ? refusedPage(visit, done.refused) : redirectTo(purged.back, doneText(done));
}

function doneText({ event, freedBytes, leftWithOwnerBytes: left }: Purge): string {
  if (event === null) return 'There was nothing to purge.';
  if (left !== undefined) return `Purged. ${leftText(left)}`;
  return `Purged: ${sizeText(freedBytes)} leave storage within about an hour.`;
}

function leftText(leftBytes: number): string {
  return `${sizeText(leftBytes)} stay with the owner of the storage bucket that held it: this service no longer knows the bucket’s place.`;
}

function refusedPage(visit: PersonVisit, refused: Refusal): SiteAnswer {
  if (refused.code === 'repository-not-found') return notFound(visit);
  const title = 'This cannot be purged';
  const text = `${refusalText(refused)}.`;
  if (!('waitSeconds' in refused)) return showProblem(visit, { status: 409, title, text });
  const headers = { 'retry-after': String(refused.waitSeconds) };
  return showProblem(visit, { status: 429, title: 'This cannot be purged yet', text, headers });
}
