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
import { redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { type Fields, NO_FIELDS, postForm, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import type { Problem } from '../layout/problems.ts';
import { sizeText } from '../layout/sizes.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { purgeAddress, repositoryAddress } from './addresses.ts';
import { showRepositoryPage, showRepositoryProblem } from './frame.ts';
import type { PageRequest } from './page-request.ts';

/** What a page purges, and where it leads. */
export interface Purged {
  readonly id: RepositoryId;
  readonly name: string;
  readonly what: Html;
  readonly action: string;
  readonly back: string;
  readonly show: (shown: ShownPurge) => SiteAnswer;
  readonly showProblem: (problem: Problem) => SiteAnswer;
}

interface ShownPurge {
  readonly title: string;
  readonly content: Html;
  readonly status: number;
}

function living(asked: PageRequest): Purged {
  const { repository } = asked;
  const home = repositoryAddress(repository);
  return {
    show: ({ title, content, status }) =>
      showRepositoryPage(
        asked,
        { title, tab: 'Settings', status },
        html`<div class="stack middle start">${content}</div>`,
      ),
    showProblem: (problem) => showRepositoryProblem(asked, problem),
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
  if ('refused' in plan) return refusedPage(purged, plan.refused);
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
  return purged.show({ title, content, status: error === undefined ? 200 : 422 });
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
  return 'refused' in done ? refusedPage(purged, done.refused) : redirectTo(purged.back, doneText(done));
}

function doneText({ event, freedBytes, leftWithOwnerBytes: left }: Purge): string {
  if (event === null) return 'There was nothing to purge.';
  if (left !== undefined) return `Purged. ${leftText(left)}`;
  return `Purged: ${sizeText(freedBytes)} leave storage within about an hour.`;
}

function leftText(leftBytes: number): string {
  return `${sizeText(leftBytes)} stay with the owner of the storage bucket that held it: this service no longer knows the bucket’s place.`;
}

const NOT_FOUND: Problem = {
  status: 404,
  title: 'Page not found',
  text: 'The repository was deleted since this page was opened.',
};

function refusedPage({ showProblem }: Purged, refused: Refusal): SiteAnswer {
  if (refused.code === 'repository-not-found') return showProblem(NOT_FOUND);
  const title = 'This cannot be purged';
  const text = `${refusalText(refused)}.`;
  if (!('waitSeconds' in refused)) return showProblem({ status: 409, title, text });
  const headers = { 'retry-after': String(refused.waitSeconds) };
  return showProblem({ status: 429, title: 'This cannot be purged yet', text, headers });
}
