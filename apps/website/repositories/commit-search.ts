/**
 * The search above a list of commits: what a person wrote into it, what it selects, and the form.
 *
 * Invariants: a time that cannot be read selects nothing and says why beside its field. Links between pages carry
 * everything as it was written.
 */
import type { Timestamp } from '../../../core/kernel/ids.ts';
import type { CommitSearch } from '../../../core/use-cases/reading/list-commits.ts';
import { type FieldErrors, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { NO_TIME, timeWritten } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { momentField } from './as-of.ts';
import type { PageRequest } from './page-request.ts';
import { SEARCH_LENGTH_MAX } from './refs-search.ts';
import { shownName } from './shown-text.ts';

const FIELDS = ['author', 'text', 'since', 'until'] as const;
type FieldName = (typeof FIELDS)[number];

export interface CommitSearchAsked {
  /** The fields as they were written; those that are empty are left out. */
  readonly texts: Readonly<Partial<Record<FieldName, string>>>;
  /** Null without a search. */
  readonly search: CommitSearch | null;
  readonly errors: FieldErrors;
}

export function commitSearchAsked({ url, signal }: Pick<PersonVisit, 'url' | 'signal'>): CommitSearchAsked {
  const texts: Partial<Record<FieldName, string>> = {};
  for (const name of FIELDS) {
    const text = (url.searchParams.get(name) ?? '').trim().slice(0, SEARCH_LENGTH_MAX).toWellFormed();
    if (text !== '') texts[name] = text;
  }
  const errors: Partial<Record<string, string>> = {};
  const time = (name: 'since' | 'until'): Timestamp | null => {
    const text = texts[name];
    const at = text === undefined ? null : timeWritten(text);
    if (text !== undefined && at === null) errors[name] = NO_TIME;
    return at;
  };
  const [since, until] = [time('since'), time('until')];
  const { author = null, text = null } = texts;
  const search = Object.keys(texts).length === 0 ? null : { author, text, since, until, signal };
  return { texts, search, errors };
}

/** It is sent to the address of its page, whose query it replaces. `all` leads to the whole list. */
export function commitSearchForm(
  { repository }: Pick<PageRequest, 'repository'>,
  all: string,
  { texts, search, errors }: CommitSearchAsked,
): Html {
  const text = (name: 'author' | 'text', label: string): Html =>
    textField({
      name,
      label,
      value: texts[name] ?? '',
      lengthMax: SEARCH_LENGTH_MAX,
      verbatim: true,
      autocomplete: 'off',
    });
  const time = (name: 'since' | 'until', label: string): Html => {
    const value = search?.[name]?.slice(0, 16) ?? texts[name] ?? '';
    // A browser would hide what is no time.
    const type = errors[name] === undefined ? 'datetime-local' : 'text';
    return textField({ name, label, type, value, error: errors[name] });
  };
  const whole = search !== null && html`<a class="button quiet" href="${all}">Show all</a>`;
  return html`<details class="box"${search !== null && html` open`}><summary>Search commits</summary><form class="inside filters" role="search" aria-label="Search commits">${momentField(
    repository,
  )}${text('author', 'Author')}${text('text', 'In the message')}${time('since', 'From (UTC)')}${time(
    'until',
    'Until (UTC)',
  )}<div class="row"><button class="button">Search</button>${whole}</div></form></details>`;
}

/** What the title of a list says of its search; nothing without one. */
export function searchTitle({ texts }: CommitSearchAsked): string {
  const parts = Object.entries(texts).map(([name, text]) => `${name} ${text}`);
  return parts.length === 0 ? '' : `: ${shownName(parts.join(', '))}`;
}
