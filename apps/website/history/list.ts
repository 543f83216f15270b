/** The account's events, newest first, with their filters, beside the record. */
import { accessTokenOf } from '../../../core/kernel/envelope.ts';
import { PAGE_COMMITS_MAX, PAGE_ROWS_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { listNewestEntries, type NewestEntries } from '../../../core/use-cases/auditing/list-entries.ts';
import type { ReadEntry } from '../../../core/use-cases/auditing/read-entries.ts';
import { type LogNames, namesInLog } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import type { SiteContext } from '../context.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { firstWithin } from '../layout/weight.ts';
import { shownName } from '../repositories/shown-text.ts';
import { type Filters, filterForm, historyAddress, readFilters } from './filters.ts';
import { readRecord, recordPanel } from './record.ts';
import { SIGN_INS_PAGE } from './sign-ins.ts';
import { actorText, addressOf } from './who.ts';
import { layerOf, repositoryIdOf, tellEvent } from './words.ts';

/** The rows of a page share it with the filters and the record. */
export const ROWS_BYTES_MAX = PAGE_ROWS_BYTES_MAX - 15_500;

export async function showHistory(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const filters = await readFilters(context, visit);
  const found = await entriesAsked(context, visit, filters);
  const names = await namesOf(context, visit, found.entries);
  const record = await readRecord(context, visit);
  const rows = rowsOfPage(found.entries.map((entry) => rowOf(visit, entry, names)));
  const last = found.entries[rows.length - 1]?.place.sequence;
  const hasMore = found.hasMore || rows.length < found.entries.length;
  const list =
    rows.length === 0
      ? html`<section class="box"><p class="empty">${emptyText(filters)}</p></section>`
      : html`<section class="box" aria-label="Events"><ol class="strata events">${rows}</ol></section>`;
  const head = html`<h1 class="title">History</h1><p>Everything that happened to your account, as its log has it. <a href="#record">Record and export</a> · <a href="${SIGN_INS_PAGE}">Sign-ins</a></p>`;
  const content = html`<div class="beside"><div class="stack">${await filterForm(context, visit, filters)}${list}${pager(visit, filters, hasMore ? last : undefined)}</div><aside class="stack">${recordPanel(visit, record, filters)}</aside></div>`;
  const status = filters.filter === null ? 422 : 200;
  const before = sequenceAsked(visit);
  const filtered = Object.entries(filters.texts).map(([name, text]) => `${name} ${shownName(text)}`);
  const title = ['History', ...filtered, ...(before === null ? [] : [`before event #${before}`])].join(', ');
  return showPage(page(visit, { title, head }, content), status);
}

export function rowsOfPage(rows: readonly Html[]): readonly Html[] {
  return firstWithin(rows, ROWS_BYTES_MAX);
}

const NOTHING_FOUND: NewestEntries = { entries: [], hasMore: false };

async function entriesAsked(context: SiteContext, visit: PersonVisit, { filter }: Filters): Promise<NewestEntries> {
  if (filter === null) return NOTHING_FOUND;
  const { account } = visit.person;
  const before = sequenceAsked(visit);
  return listNewestEntries(context, { account, seen: visit.position, filter, before, limit: PAGE_COMMITS_MAX });
}

/** The sequence that the page ends before; null for the newest page. */
function sequenceAsked({ url }: PersonVisit): number | null {
  const text = url.searchParams.get('before') ?? '';
  return /^\d{1,12}$/.test(text) ? Number(text) : null;
}

export async function namesOf(
  context: SiteContext,
  { person }: PersonVisit,
  entries: readonly ReadEntry[],
): Promise<LogNames> {
  const repositories = entries.flatMap(({ event }) => repositoryIdOf(event) ?? []);
  const tokens = entries.flatMap(({ event }) => accessTokenOf(event.actor) ?? []);
  return namesInLog(context, person.account, { repositories, tokens });
}

function rowOf(visit: PersonVisit, entry: ReadEntry, names: LogNames): Html {
  const { event, place } = entry;
  const address = addressOf(entry);
  const layer = layerOf(event);
  return html`<li${layer !== '' && html` class="${layer}"`}>${timeAgo(event.occurredAt, visit.now)}<span class="what">${tellEvent(
    event,
    names,
  )}</span><span class="by">${actorText(event.actor, names)}${address !== null && html` · from ${address}`} · ${event.type}</span><span class="do"><a href="/history/${place.sequence}" aria-label="Event #${place.sequence}">#${place.sequence}</a></span></li>
`;
}

function emptyText({ filter, texts }: Filters): string {
  if (filter === null) return 'The filter cannot be read.';
  return Object.keys(texts).length > 0 ? 'No event meets the filter.' : 'There are no older events.';
}

function pager(visit: PersonVisit, { texts }: Filters, before: number | undefined): Html {
  const isNewest = sequenceAsked(visit) === null;
  return html`<nav class="row pager" aria-label="Pages">${!isNewest && html`<a class="button" rel="first" href="${historyAddress(texts)}">Newest</a>`}${
    before !== undefined &&
    html`<a class="button" rel="next" href="${historyAddress({ ...texts, before: String(before) })}">Older</a>`
  }</nav>`;
}
