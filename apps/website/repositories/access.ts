/**
 * Who could read a repository as of a moment, and who read and wrote it.
 *
 * Invariants: only the owner comes here. A form that cannot be read shows what is wrong beside its field, and asks
 * nothing of the log.
 */
import type { AccessSubject } from '../../../core/audit/account-access.ts';
import { accessTokenOf } from '../../../core/kernel/envelope.ts';
import type { Grant } from '../../../core/kernel/grants.ts';
import { type AccessTokenId, parseUuid, type Timestamp } from '../../../core/kernel/ids.ts';
import type { RepositoryUse, RepositoryUsePlace } from '../../../core/ports/usage-ledger.ts';
import type { RepositoryAccess } from '../../../core/use-cases/auditing/account-states.ts';
import { type ListedAccesses, listRepositoryAccesses } from '../../../core/use-cases/auditing/repository-accesses.ts';
import { type LogNames, namesInLog } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import type { Opened } from '../../../core/use-cases/tokens/opened-addresses.ts';
import { accessPlaceText, parseAccessPlace } from '../../front-door/list-places.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { textField } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { NO_TIME, timeAgo, timeWritten } from '../layout/times.ts';
import { firstWithin } from '../layout/weight.ts';
import { GRANT_LABELS } from '../tokens/words.ts';
import { repositoryAddress } from './addresses.ts';
import { showRepositoryPage } from './frame.ts';
import type { PageRequest } from './page-request.ts';
import { ACTOR_WORDS } from './pushed-by.ts';
import { counted, shownName } from './shown-text.ts';

/** The bytes of the rows of who could read it; the API has what a page leaves out. */
export const SUBJECTS_BYTES_MAX = 22_000;
/** Accesses on a page: each may name several addresses. */
const PAGE_ACCESSES = 25;
/** Addresses that a row names; the others are counted. */
export const ACCESS_ADDRESSES_MAX = 3;

const FIELDS = ['at', 'since', 'until'] as const;
type FieldName = (typeof FIELDS)[number];

interface Asked {
  /** The fields as they were written; those that are empty are left out. */
  readonly texts: Readonly<Partial<Record<FieldName, string>>>;
  readonly times: Readonly<Record<FieldName, Timestamp | null>>;
  readonly after: RepositoryUsePlace | null;
  readonly errors: Readonly<Partial<Record<FieldName, string>>>;
}

/** What is read of the text of a field. Internal: times are shorter. */
const TIME_TEXT_LENGTH_MAX = 40;

function askedOf({ visit }: PageRequest): Asked {
  const texts: Partial<Record<FieldName, string>> = {};
  const times: Record<FieldName, Timestamp | null> = { at: null, since: null, until: null };
  const errors: Partial<Record<FieldName, string>> = {};
  for (const name of FIELDS) {
    const text = (visit.url.searchParams.get(name) ?? '').trim().slice(0, TIME_TEXT_LENGTH_MAX);
    if (text === '') continue;
    texts[name] = text;
    times[name] = timeWritten(text);
    if (times[name] === null) errors[name] = NO_TIME;
  }
  return { texts, times, after: parseAccessPlace(visit.url.searchParams.get('after') ?? ''), errors };
}

export async function showAccess(request: PageRequest): Promise<SiteAnswer> {
  const { context, visit, repository } = request;
  const asked = askedOf(request);
  const { times, errors } = asked;
  const of = { account: repository.accountId, repository: repository.id };
  const could =
    errors.at === undefined
      ? await context.accountStates.accessAt({ ...of, at: times.at }, { seen: visit.position, signal: visit.signal })
      : null;
  const did =
    errors.since === undefined && errors.until === undefined
      ? await listRepositoryAccesses(context, {
          ...of,
          seen: visit.position,
          since: times.since,
          until: times.until,
          after: asked.after,
          limit: PAGE_ACCESSES,
        })
      : null;
  const names = await namesInLog(context, repository.accountId, {
    repositories: [],
    tokens: (did?.accesses ?? []).flatMap((access) => accessTokenOf(access) ?? []),
  });
  const isWrong = Object.keys(errors).length > 0 || (could !== null && 'refused' in could);
  const content = html`<h1 class="unseen">Access</h1>${couldBox(request, asked, could)}${didBox(request, asked, did, names)}`;
  return showRepositoryPage(request, { title: 'Access', tab: 'Activity', status: isWrong ? 422 : 200 }, content);
}

function addressOf({ repository }: PageRequest, query: Readonly<Partial<Record<FieldName | 'after', string>>>): string {
  const search = new URLSearchParams(query);
  const address = `${repositoryAddress(repository)}/access`;
  return search.size === 0 ? address : `${address}?${search.toString()}`;
}

function timeField(name: FieldName, label: string, { texts, times, errors }: Asked): Html {
  const at = times[name];
  // A browser would hide what is no time.
  const type = errors[name] === undefined ? 'datetime-local' : 'text';
  const value = at === null ? (texts[name] ?? '') : at.slice(0, 16);
  return textField({ name, label, type, value, error: errors[name] });
}

function kept(texts: Asked['texts'], names: readonly FieldName[]): Content {
  return names.map((name) => {
    const text = texts[name];
    return text !== undefined && html`<input type="hidden" name="${name}" value="${text}">`;
  });
}

type Could = Awaited<ReturnType<PageRequest['context']['accountStates']['accessAt']>>;

function couldBox(request: PageRequest, asked: Asked, could: Could | null): Html {
  const form = html`<form class="part filters" action="${addressOf(request, {})}" role="search" aria-label="As of a moment">${timeField(
    'at',
    'As of (UTC)',
    asked,
  )}${kept(asked.texts, ['since', 'until'])}<div class="row"><button class="button">Show</button></div></form>`;
  return html`<section class="box" aria-labelledby="could"><header><h2 id="could">Who could read it</h2><span class="end soft">${
    could !== null && !('refused' in could) && html`${could.at.slice(0, 16).replace('T', ' ')} UTC`
  }</span></header>${form}${couldTable(could)}</section>`;
}

function couldTable(could: Could | null): Content {
  if (could === null) return null;
  if ('refused' in could) return html`<p class="empty">${refusalText(could.refused)}.</p>`;
  const { subjects }: RepositoryAccess = could;
  if (subjects.length === 0) return html`<p class="empty">Nobody: the account was closed.</p>`;
  const rows = subjectRowsOfPage(subjects.map(subjectRow));
  const more = subjects.length - rows.length;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Who could read it"><table class="cards"><thead><tr><th scope="col">Who</th><th scope="col">Permissions</th><th scope="col">Repositories</th><th scope="col">Event</th></tr></thead><tbody>
${rows}</tbody></table></div>${more > 0 && html`<p class="empty">And ${counted(more, 'other')}, which the API lists.</p>`}`;
}

export function subjectRowsOfPage(rows: readonly Html[]): readonly Html[] {
  return firstWithin(rows, SUBJECTS_BYTES_MAX);
}

const KINDS: Readonly<Record<AccessSubject['kind'], string>> = {
  user: 'The owner',
  webhook: 'A webhook',
  token: 'The token',
  trust_rule: 'The trust rule',
};

function subjectRow({ kind, id, name, grants, scope, eventId }: AccessSubject): Html {
  const label = name !== null && html` <strong><bdi>${shownName(name)}</bdi></strong>`;
  const who =
    kind === 'token'
      ? html`<a href="/access-tokens/${id}/activity">${KINDS[kind]}${label}</a>`
      : html`${KINDS[kind]}${label}`;
  const allowed = kind === 'webhook' ? `Is told of ${grants.join(', ')}` : grants.map(grantText).join(' · ');
  return html`<tr><td class="wrap">${who}</td><td class="wrap" data-label="Permissions">${allowed}</td><td data-label="Repositories">${
    scope === 'ALL_REPO' ? 'All' : 'Some'
  }</td><td><a href="/history/${eventId}">Event<span class="unseen"> that gave it to ${name === null ? KINDS[kind] : shownName(name)}</span></a></td></tr>
`;
}

function grantText(grant: string): string {
  return grant === 'ALL' ? 'Everything' : (GRANT_TEXTS[grant] ?? grant);
}

const GRANT_TEXTS: Readonly<Record<string, string>> = GRANT_LABELS satisfies Record<Exclude<Grant, 'ALL'>, string>;

function didBox(request: PageRequest, asked: Asked, did: ListedAccesses | null, names: LogNames): Html {
  const { texts } = asked;
  const form = html`<form class="part filters" action="${addressOf(request, {})}" role="search" aria-label="Who did">${timeField(
    'since',
    'From (UTC)',
    asked,
  )}${timeField('until', 'Before (UTC)', asked)}${kept(texts, ['at'])}<div class="row"><button class="button">Show</button></div></form>`;
  const last = did?.accesses.at(-1);
  const next =
    did?.hasMore === true && last !== undefined ? addressOf(request, { ...texts, after: accessPlaceText(last) }) : null;
  return html`<section class="box" aria-labelledby="did"><header><h2 id="did">Who did</h2><span class="end soft">by the minute, oldest first</span></header>${form}${
    did !== null && didTable(request, did, names)
  }</section><p class="soft">Commits, lists of branches and tags, pages of this site other than raw files, and what webhooks are told leave no row here. Reads of the last minute are not in the log yet.</p><nav class="row pager" aria-label="Pages">${
    asked.after !== null && html`<a class="button" rel="first" href="${addressOf(request, texts)}">Oldest</a>`
  }${next !== null && html`<a class="button" rel="next" href="${next}">Newer</a>`}<a class="button quiet" href="${repositoryAddress(
    request.repository,
  )}/activity">Activity</a></nav>`;
}

function didTable({ visit }: PageRequest, { accesses }: ListedAccesses, names: LogNames): Html {
  if (accesses.length === 0) return html`<p class="empty">Nobody read or wrote it in this time.</p>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Who did"><table class="cards"><thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col" class="number">Reads</th><th scope="col" class="number">Pushes</th><th scope="col" class="number">Restorations</th><th scope="col">From</th></tr></thead><tbody>
${accesses.map((access) => accessRow(visit.now, access, names))}</tbody></table></div>`;
}

export function accessRow(now: Timestamp, access: Opened<RepositoryUse>, { tokens }: Pick<LogNames, 'tokens'>): Html {
  const { minute, wholeDay, kind, reads, pushes, restores } = access;
  const when = wholeDay
    ? html`<time datetime="${minute.slice(0, 10)}">${minute.slice(0, 10)}</time>, the whole day`
    : timeAgo(minute, now);
  const addresses = [...new Set([...access.addresses.values()].map(({ value }) => value))];
  const shown = addresses.slice(0, ACCESS_ADDRESSES_MAX).map((address) => shownName(address));
  const more = addresses.length - shown.length;
  const from = more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
  return html`<tr><td>${when}</td><td class="wrap" data-label="Who">${
    kind === 'token' ? tokenLink(access.id, tokens) : ACTOR_WORDS[kind]
  }</td><td class="number" data-label="Reads">${reads}</td><td class="number" data-label="Pushes">${pushes}</td><td class="number" data-label="Restorations">${restores}</td><td class="wrap" data-label="From">${from}</td></tr>
`;
}

function tokenLink(id: string, tokens: LogNames['tokens']): Content {
  const token = parseUuid<AccessTokenId>(id);
  if (token === null) return 'with an access token';
  const name = tokens.get(token);
  return html`<a href="/access-tokens/${token}/activity">${
    name === undefined ? 'a token that is gone' : html`the token <strong><bdi>${shownName(name)}</bdi></strong>`
  }</a>`;
}
