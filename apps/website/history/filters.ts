/**
 * The filters of the history: what a person wrote into the form, what it selects, and the form.
 *
 * Invariants: a filter that cannot be read selects nothing and says why beside its field. Links between pages carry
 * every filter as it was written.
 */
import { RECORD_TYPES } from '../../../core/catalogue.ts';
import type { StreamName } from '../../../core/kernel/envelope.ts';
import { parseUuid, type RepositoryId, type Timestamp } from '../../../core/kernel/ids.ts';
import type { EntryFilter } from '../../../core/ports/account-log.ts';
import { findRepositoryLedTo } from '../../../core/use-cases/repositories/repositories.ts';
import { listAccessTokens } from '../../../core/use-cases/tokens/list-access-tokens.ts';
import type { SiteContext } from '../context.ts';
import { choiceField, type FieldErrors, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { NO_TIME, timeWritten } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { bytesOf } from '../layout/weight.ts';
import { shownName } from '../repositories/shown-text.ts';
import { ENTRY_TYPES } from './words.ts';

const FILTERS = ['type', 'repository', 'by', 'request', 'since', 'until'] as const;
type FilterName = (typeof FILTERS)[number];

export interface Filters {
  /** The filters as they were written; those that are empty are left out. */
  readonly texts: Readonly<Partial<Record<FilterName, string>>>;
  /** Null if one of them cannot be read. */
  readonly filter: EntryFilter | null;
  readonly errors: FieldErrors;
}

/** Returns the address of the events that meet filters, older than those of the pages before. */
export function historyAddress(query: Readonly<Partial<Record<FilterName | 'before', string>>>): string {
  const search = new URLSearchParams(query);
  return search.size === 0 ? '/history' : `/history?${search.toString()}`;
}

/** What is read of the text of a filter: names of repositories, types and ids are shorter. */
export const TEXT_LENGTH_MAX = 200;

export function textsAsked({ url }: Pick<PersonVisit, 'url'>): Filters['texts'] {
  const texts: Partial<Record<FilterName, string>> = {};
  for (const name of FILTERS) {
    // PostgreSQL takes no text with a zero in it.
    const text = (url.searchParams.get(name) ?? '').replaceAll('\0', '\uFFFD').trim().slice(0, TEXT_LENGTH_MAX);
    if (text !== '') texts[name] = text;
  }
  return texts;
}

export async function readFilters(context: SiteContext, visit: PersonVisit): Promise<Filters> {
  const texts = textsAsked(visit);
  const { type = null, repository, by = null, request = null, since, until } = texts;
  const errors: Partial<Record<string, string>> = {};
  if (type !== null && !RECORD_TYPES.has(type)) errors['type'] = 'No event has this type';
  const repositoryId = repository === undefined ? null : await repositoryNamed(context, visit, repository);
  if (repository !== undefined && repositoryId === null) errors['repository'] = 'You have no repository of this name';
  const time = (name: 'since' | 'until', text: string | undefined): Timestamp | null => {
    const at = text === undefined ? null : timeWritten(text);
    if (text !== undefined && at === null) errors[name] = NO_TIME;
    return at;
  };
  const times = { since: time('since', since), until: time('until', until) };
  const stream: StreamName | null = null;
  const filter = { type, stream, repositoryId, actorId: by, requestId: request, ...times };
  return { texts, filter: Object.keys(errors).length === 0 ? filter : null, errors };
}

/** An id names also a repository that was deleted. */
async function repositoryNamed(
  context: SiteContext,
  { person }: PersonVisit,
  text: string,
): Promise<RepositoryId | null> {
  const id = parseUuid<RepositoryId>(text);
  if (id !== null) return id;
  const name = text.startsWith(`${person.username}/`) ? text.slice(person.username.length + 1) : text;
  return (await findRepositoryLedTo(context, person.username, name))?.id ?? null;
}

/** Tokens that the form offers, and the bytes that they take. Others are found through their own page. */
export const TOKENS_OFFERED_MAX = 30;
export const TOKENS_BYTES_MAX = 4_000;

export async function filterForm(
  context: SiteContext,
  visit: PersonVisit,
  { texts, errors, filter }: Filters,
): Promise<Html> {
  const { items: tokens } = await listAccessTokens(context, visit.person.account, visit.position);
  const field = (name: 'since' | 'until', label: string): Html => {
    const at = filter?.[name] ?? null;
    const value = at === null ? (texts[name] ?? '') : at.slice(0, 16);
    // A browser would hide what is no time.
    const type = errors[name] === undefined ? 'datetime-local' : 'text';
    return textField({ name, label, type, value, error: errors[name] });
  };
  const others = Object.keys(texts).length > 0 && html`<a class="button quiet" href="/history">Show all</a>`;
  return html`<form class="box part filters" action="/history" role="search" aria-label="Filter the history">${typeChoice(
    texts.type,
    errors['type'],
  )}${textField({
    name: 'repository',
    label: 'Repository',
    value: texts.repository ?? '',
    error: errors['repository'],
    verbatim: true,
    autocomplete: 'off',
  })}${actorChoice(
    visit,
    tokens.map(({ token }) => token),
    texts.by,
  )}${textField({
    name: 'request',
    label: 'Request',
    value: texts.request ?? '',
    verbatim: true,
    autocomplete: 'off',
  })}${field('since', 'From (UTC)')}${field('until', 'Before (UTC)')}<div class="row"><button class="button">Filter</button>${others}</div></form>`;
}

function typeChoice(chosen: string | undefined, error: string | undefined): Html {
  const option = ([value, label]: readonly [string, string]): Html =>
    html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`;
  const known = ENTRY_TYPES.some(({ types }) => types.some(([type]) => type === chosen));
  const other = chosen !== undefined && !known && option([chosen, shownName(chosen)]);
  const groups = ENTRY_TYPES.map(
    ({ group, types }) => html`<optgroup label="${group}">${types.map(option)}</optgroup>`,
  );
  return choiceField({ name: 'type', label: 'What', error }, html`${option(['', 'Everything'])}${other}${groups}`);
}

export function actorChoice(
  { person }: { readonly person: Pick<PersonVisit['person'], 'account'> },
  tokens: readonly { readonly id: string; readonly name: string }[],
  chosen: string | undefined,
): Html {
  const option = (value: string, label: string): Html =>
    html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`;
  const offered = tokens.slice(0, TOKENS_OFFERED_MAX).map(({ id, name }) => option(id, `The token ${shownName(name)}`));
  const fitting = offered.filter((_, at) => bytesOf(...offered.slice(0, at + 1)) <= TOKENS_BYTES_MAX);
  const known =
    chosen === undefined ||
    chosen === person.account ||
    tokens.slice(0, fitting.length).some(({ id }) => id === chosen);
  const other = !known && option(chosen, tokens.find(({ id }) => id === chosen)?.name ?? `Only ${shownName(chosen)}`);
  return html`<div><label for="by">By</label><select id="by" name="by">${option('', 'Anybody')}${option(
    person.account,
    'You, on this site',
  )}${other}${fitting}</select></div>`;
}
