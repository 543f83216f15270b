/**
 * Setting branches and tags back to before an event, or to a moment, which asks on a page of its own that shows what
 * would change.
 *
 * Invariants: what is confirmed is what was shown. The form carries the revision of the plan, and after any change
 * of the repository since then the page shows the new plan instead.
 */
import { type EventId, parseUuid } from '../../../core/kernel/ids.ts';
import type { Refusal, RefusalCode } from '../../../core/kernel/refusal.ts';
import type { ExpectedRevision } from '../../../core/ports/event-store.ts';
import type { StoredRefUpdate } from '../../../core/repository/events.ts';
import { planRestoration, restoreRefs, type WantedRestoration } from '../../../core/use-cases/undo/restore-refs.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import { redirectTo, redirectWithUndo, type SiteAnswer } from '../layout/answer.ts';
import { type Fields, hiddenField, postForm } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { repositoryAddress } from './addresses.ts';
import { longTime, momentWritten } from './as-of.ts';
import { notFoundHere, showRepositoryPage, showRepositoryProblem } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { counted, shortId, shownName } from './shown-text.ts';

/** Changes that a page lists; it says how many more there are. */
export const UPDATES_SHOWN_MAX = 100;

interface WantedOnPage {
  readonly to: WantedRestoration['to'];
  /** The fields of the page's address and of its form that say so. */
  readonly fields: Readonly<Record<string, string>>;
  /** The only ref to restore; empty for all. */
  readonly ref: string;
}

/** `before` names the event that is undone, `at` a moment as in the addresses of pages. */
function wantedOnPage(text: (name: string) => string): WantedOnPage | null {
  const [before, at, ref] = [text('before'), text('at').trim(), text('ref')];
  if (at === '') {
    const event = parseUuid<EventId>(before);
    return event === null ? null : { to: { beforeEvent: event }, fields: { before }, ref };
  }
  const moment = momentWritten(at);
  return moment === null ? null : { to: moment, fields: { at }, ref };
}

/** Returns the address of the page that asks; `ref` empty for all refs. */
export function restorationAddress(repository: PageRequest['repository'], event: string, ref: string): string {
  return addressOf(repository, ref === '' ? { before: event } : { before: event, ref });
}

function addressOf(repository: PageRequest['repository'], query: Readonly<Record<string, string>>): string {
  return `${repositoryAddress(repository)}/restore?${new URLSearchParams(query).toString()}`;
}

export async function askToRestore(asked: PageRequest): Promise<SiteAnswer> {
  const { searchParams } = asked.visit.url;
  const wanted = wantedOnPage((name) => searchParams.get(name) ?? '');
  return wanted === null ? notFoundHere(asked) : ask(asked, wanted);
}

export async function restoreFromForm(asked: PageRequest, fields: Fields): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const wanted = wantedOnPage((name) => fields.text(name));
  if (wanted === null) return notFoundHere(asked);
  const seen = seenRevision(fields.text('seen'));
  const restored = await restoreRefs(context, await visit.origin(repository), restoration(asked, wanted, seen));
  if ('refused' in restored) {
    if (restored.refused.code !== 'refs-moved-meanwhile') return refusedPage(asked, restored.refused);
    return ask(asked, wanted, 'The repository was changed since this page was opened. This is what would change now.');
  }
  const { updates, leftOut, event } = restored;
  const message = `${counted(updates.length, 'ref')} restored.${leftOut.length === 0 ? '' : ` Left out: ${namesText(leftOut, NAMES_IN_MESSAGE_MAX)}.`}`;
  const activity = `${repositoryAddress(repository)}/activity`;
  if (event === null) return redirectTo(activity, message);
  return redirectWithUndo(activity, message, restorationAddress(repository, event, wanted.ref));
}

function restoration(
  { visit, repository }: PageRequest,
  { to, ref }: WantedOnPage,
  seen: ExpectedRevision | null,
): WantedRestoration {
  return { repository, to, refs: ref === '' ? null : [ref], seen, signal: visit.signal };
}

/** No stream is at the revision -1, so that a form without one shows the plan. */
function seenRevision(text: string): ExpectedRevision {
  return /^\d{1,15}$/.test(text) ? Number(text) : -1;
}

async function ask(asked: PageRequest, wanted: WantedOnPage, error: string | null = null): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const plan = await planRestoration(context, restoration(asked, wanted, null));
  if ('refused' in plan) return refusedPage(asked, plan.refused);
  const home = repositoryAddress(repository);
  const { updates, leftOut, revision } = plan;
  const cancel = html`<a class="button quiet" href="${home}/activity">Cancel</a>`;
  const hidden = Object.entries(wanted.fields).map(([name, value]) => hiddenField(name, value));
  const form = postForm(
    { action: `${home}/restore`, csrf: visit.csrf(), errors: error === null ? {} : { form: error } },
    html`${hidden}${hiddenField('ref', wanted.ref)}${hiddenField('seen', String(revision))}<div class="row"><button class="button main">Restore</button>${cancel}</div>`,
  );
  const content = html`<div class="stack middle start"><h1>${heading(wanted)}</h1>${scope(asked, wanted)}${
    leftOut.length > 0 &&
    html`<p class="note">Left out: <bdi>${namesText(leftOut, NAMES_SHOWN_MAX)}</bdi>. No branch or tag of such a name is created any more.</p>`
  }${
    updates.length === 0
      ? html`<p>Nothing changes${leftOut.length === 0 && ': what is there now is what was there then'}.</p><div class="row">${cancel}</div>`
      : html`${updatesTable(updates)}<p class="soft">You can undo the restoration afterwards.</p>${form}`
  }</div>`;
  const status = error === null ? 200 : 409;
  return showRepositoryPage(asked, { title: titleOf(wanted), tab: 'Activity', status }, content);
}

function heading({ to }: WantedOnPage): Content {
  if ('beforeEvent' in to) return 'Go back to before this change';
  return 'at' in to ? html`Restore to ${longTime(to.at)}` : 'Restore to this event';
}

function titleOf({ to, fields, ref }: WantedOnPage): string {
  const what = 'beforeEvent' in to ? `before event ${to.beforeEvent}` : (fields['at'] ?? '');
  return `Restore ${ref === '' ? 'all branches and tags' : shownName(ref)} to ${what}`;
}

function scope({ repository }: PageRequest, { fields, ref }: WantedOnPage): Html {
  if (ref === '') return html`<p>All branches and tags are set back, and those made later are deleted.</p>`;
  return html`<p>Only <strong><bdi>${shownName(ref)}</bdi></strong> is set back. <a href="${addressOf(repository, fields)}">All branches and tags instead</a></p>`;
}

const WORDS: Readonly<Record<StoredRefUpdate['kind'], string>> = {
  create: 'Comes back',
  'fast-forward': 'Moves forward',
  'force-push': 'Moves back',
  delete: 'Is deleted',
};

export function updatesTable(updates: readonly StoredRefUpdate[]): Html {
  const rows = updates
    .slice(0, UPDATES_SHOWN_MAX)
    .map(
      ({ ref, before, after, kind }) =>
        html`<tr><td><bdi>${shownName(ref)}</bdi></td><td>${WORDS[kind]}</td><td class="id">${idText(before)}</td><td class="id">${idText(after)}</td></tr>`,
    );
  const more = updates.length - rows.length;
  return html`<div class="box"><div class="scroll" tabindex="0" role="group" aria-label="What changes"><table><thead><tr><th scope="col">Ref</th><th scope="col">Change</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead><tbody>${rows}</tbody></table></div></div>${
    more > 0 && html`<p>And ${more} more.</p>`
  }`;
}

/** Names that the page lists, and those that a message has room for. */
export const NAMES_SHOWN_MAX = 20;
export const NAMES_IN_MESSAGE_MAX = 5;

export function namesText(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).map(shownName).join(', ');
  const more = names.length - most;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function idText(id: string): string {
  return /^0+$/.test(id) ? '–' : shortId(id);
}

const STATUSES: Readonly<Partial<Record<RefusalCode, number>>> = { 'objects-expired': 410, 'moment-in-future': 422 };

function refusedPage(asked: PageRequest, refused: Refusal): SiteAnswer {
  if (refused.code === 'event-not-found' || refused.code === 'ref-not-found') return notFoundHere(asked);
  const status = STATUSES[refused.code] ?? 409;
  const back = { path: `${repositoryAddress(asked.repository)}/activity`, label: 'the activity' };
  return showRepositoryProblem(asked, {
    status,
    title: 'This cannot be restored',
    text: `${refusalText(refused)}.`,
    back,
  });
}
