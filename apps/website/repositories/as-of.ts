/**
 * Pages of a repository as of a moment: `?at=` names it, and a band on each of them says so.
 *
 * Invariants: a page that shows the past says it, and every link to a page that can show the same moment does.
 */
import { type Moment, parseMoment } from '../../../core/audit/moment.ts';
import type { Timestamp } from '../../../core/kernel/ids.ts';
import type { MomentDenial, PastRepositories } from '../../../core/use-cases/as-of/repository-as-of.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type Content, html } from '../layout/html.ts';
import type { Problem } from '../layout/problems.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { changesAddress, momentQuery, repositoryAddress, shownAddress } from './addresses.ts';

/** Returns the repository as of the moment in the query, or what to say instead. */
export async function repositoryAsOf(
  { pastRepositories }: { readonly pastRepositories: PastRepositories },
  repository: FoundRepository,
  text: string,
  { position, signal }: Pick<PersonVisit, 'position' | 'signal'>,
): Promise<FoundRepository | Problem> {
  const moment = momentWritten(text);
  if (moment === null) {
    const words = 'Write a time such as 2026-11-03T14:02:00Z, or the id of one of the repository’s events.';
    return { status: 404, title: 'No such moment', text: words };
  }
  const found = await pastRepositories.asOf(repository, moment, { seen: position, signal });
  return 'denied' in found ? problemOf(found.denied) : found;
}

/** The form in which fields for a date and a time send it. */
const WITHOUT_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(?:\.\d{1,3})?)?$/;

/** Reads a moment of an address or a form: a time without an offset is UTC. */
export function momentWritten(text: string): Moment | null {
  // In a query a plus stands for a space.
  const written = text.trim().replace(' ', '+');
  const [, seconds = ':00'] = WITHOUT_OFFSET.exec(written) ?? [];
  return parseMoment(WITHOUT_OFFSET.test(written) ? `${written.slice(0, 16)}${seconds}Z` : written);
}

function problemOf(denial: MomentDenial): Problem {
  switch (denial.code) {
    case 'moment-in-future':
      return { status: 404, title: 'This moment has not come yet', text: 'Only the past can be shown.' };
    case 'repository-not-yet-made':
      return {
        status: 404,
        title: 'Not created yet',
        text: html`The repository was created on ${longTime(denial.madeAt)}.`,
      };
    case 'repository-deleted-then':
      return {
        status: 404,
        title: 'Deleted at this moment',
        text: 'Choose a moment before it was deleted, or after it came back.',
      };
    case 'event-not-found':
      return { status: 404, title: 'No such event', text: 'No event of this repository has this id.' };
    case 'objects-expired':
      return {
        status: 410,
        title: 'This moment is not kept any more',
        text: html`What it shows was removed from storage${
          denial.event !== null && html` by the event <code class="id">${denial.event}</code>`
        }. The record of what happened is kept.`,
      };
  }
}

/** What a page of the past begins with; nothing for a page of today. */
export function asOfBand({ repository }: { readonly repository: FoundRepository }): Content {
  const { asOf, entity } = repository;
  if (asOf === undefined) return null;
  const home = repositoryAddress(repository);
  const at = momentShown(repository);
  const event = 'event' in asOf ? html` with event ${String(entity.revision)}` : '';
  return html`<section class="asof" aria-label="As of"><strong>As of${at !== null && html` ${longTime(at)}`}${event}</strong><span>Nothing newer is shown.</span><span class="end row"><a href="${shownAddress(
    repository,
    home,
  )}#clone">Clone it</a> <a href="${changesAddress(repository)}">What changed since</a> <a href="${shownAddress(repository, `${home}/restore`)}">Restore to here</a> <a href="${home}">Back to now</a></span></section>`;
}

/** The time that a page of the past shows, if it has one; null for a page of today. */
export function momentShown({ asOf, entity }: Pick<FoundRepository, 'asOf' | 'entity'>): Timestamp | null {
  if (asOf === undefined) return null;
  // The event is the last one folded.
  return 'at' in asOf ? asOf.at : entity.lastAt;
}

/** The field with which a form leads to the same moment. */
export function momentField(repository: FoundRepository): Content {
  return Object.entries(momentQuery(repository)).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
}

const LONG = new Intl.DateTimeFormat('en-GB', {
  ...({ day: 'numeric', month: 'long', year: 'numeric' } as const),
  ...({ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZone: 'UTC' } as const),
});

export function longTime(at: Timestamp): Content {
  return html`<time datetime="${at}">${LONG.format(new Date(at)).replace(' at ', ', ')} UTC</time>`;
}
