/**
 * The moments of pushes to choose from, for the page of a repository that the picker was opened on.
 *
 * Invariants: `of` is the path of that page below the repository. It leads nowhere else, whoever wrote it. The list is
 * a form, so that it holds the path once, however many moments it has.
 */
import { PAGE_COMMITS_MAX } from '../../../core/kernel/limits.ts';
import type { PushRow } from '../../../core/ports/activity.ts';
import { listMoments } from '../../../core/use-cases/as-of/list-moments.ts';
import { localPath, redirectTo, type SiteAnswer } from '../layout/answer.ts';
import { hiddenField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import { changesAddress, MOMENT, repositoryAddress } from './addresses.ts';
import { longTime, momentWritten } from './as-of.ts';
import { notFoundHere, showRepositoryPage } from './frame.ts';
import { numberAsked, type PageRequest } from './page-request.ts';
import { rowsWithin } from './pager.ts';
import { pusher } from './pushed-by.ts';
import { shownName } from './shown-text.ts';

const PLACE = 'of';

export async function showMoments(asked: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = asked;
  const { searchParams } = visit.url;
  const place = placeAsked(asked);
  const chosen = searchParams.get('moment');
  if (chosen !== null) return leadToMoment(asked, place, chosen);
  const before = searchParams.has('before') ? numberAsked(visit, 'before', 0) : null;
  const { moments, hasOlder } = await listMoments(context, repository, { before, limit: PAGE_COMMITS_MAX });
  const page = { offset: 0, limit: PAGE_COMMITS_MAX, usual: PAGE_COMMITS_MAX };
  const { rows } = rowsWithin(moments, page, (moment) => rowOf(asked, moment));
  const last = rows.at(-1)?.item.revision;
  const older = last !== undefined && (hasOlder || rows.length < moments.length) ? last : null;
  const action = `${repositoryAddress(repository)}/moments`;
  const of = place === '' ? 'the repository' : shownName(place);
  const list = html`<form class="moments" action="${action}">${hiddenField(PLACE, place)}<ol class="strata">${rows.map(
    ({ row }) => row,
  )}</ol></form>`;
  const content = html`<h1>Choose a moment</h1><p class="soft">Shows <bdi>${of}</bdi> as it was with a push.</p>${
    rows.length === 0
      ? html`<section class="box empty"><p>Nothing was pushed ${before === null ? 'yet' : 'before'}.</p><p><a href="${repositoryAddress(repository)}">Go to the repository</a></p></section>`
      : html`<section class="box" aria-label="Pushes">${list}</section>`
  }${pages(action, place, { isFirst: before === null, older })}`;
  const title = `Choose a moment of ${of}${before === null ? '' : `, before event ${before}`}`;
  return showRepositoryPage(asked, { title, tab: 'Activity' }, content);
}

/** The place that the query names; the home for one outside of the repository. */
function placeAsked({ visit, repository }: PageRequest): string {
  const place = visit.url.searchParams.get(PLACE) ?? '';
  const home = repositoryAddress(repository);
  if (!/^(?:\/|\?|$)/.test(place) || localPath(`${home}${place}`) === null) return '';
  const { pathname } = new URL(`${home}${place}`, visit.webUrl);
  return pathname === home || pathname.startsWith(`${home}/`) ? place : '';
}

function leadToMoment(asked: PageRequest, place: string, text: string): SiteAnswer {
  const moment = momentWritten(text);
  if (moment === null) return notFoundHere(asked);
  const [path = '', query = ''] = place.split('#', 1)[0]?.split('?', 2) ?? [];
  const search = new URLSearchParams(query);
  search.set(MOMENT, 'event' in moment ? moment.event : moment.at);
  return redirectTo(`${repositoryAddress(asked.repository)}${path}?${search.toString()}`);
}

function rowOf({ visit, repository }: PageRequest, push: PushRow): Html {
  const since = changesAddress({ ...repository, asOf: { event: push.eventId } });
  return html`<li class="pushed">${timeAgo(push.at, visit.now)}<span class="what"><button class="link" name="moment" value="${
    push.eventId
  }">${longTime(push.at)}</button></span><span class="by">${pusher(push)} · event ${push.revision} · <a href="${since}">What changed since<span class="unseen"> event ${push.revision}</span></a></span></li>`;
}

interface Pages {
  readonly isFirst: boolean;
  /** The revision that the next page ends before; null for the last page. */
  readonly older: number | null;
}

function pages(action: string, place: string, { isFirst, older }: Pages): Content {
  if (isFirst && older === null) return null;
  const link = (query: Readonly<Record<string, string>>, rel: string, label: string): Html => {
    const search = new URLSearchParams({ [PLACE]: place, ...query });
    return html`<a class="button" rel="${rel}" href="${action}?${search.toString()}">${label}</a>`;
  };
  return html`<nav class="row pager" aria-label="Pages">${!isFirst && link({}, 'first', 'Newest')}${
    older !== null && link({ before: String(older) }, 'next', 'Older')
  }</nav>`;
}
