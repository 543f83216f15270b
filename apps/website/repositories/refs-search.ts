/** The field above a list of branches or tags, and what a search without a result shows. */
import { type Html, html } from '../layout/html.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { momentField } from './as-of.ts';
import type { PageRequest } from './page-request.ts';
import { shownName } from './shown-text.ts';

/** What is read of a search for branches or tags. */
export const SEARCH_LENGTH_MAX = 200;

export function searchAsked({ visit }: { readonly visit: Pick<PersonVisit, 'url'> }): string {
  return (visit.url.searchParams.get('q') ?? '').trim().slice(0, SEARCH_LENGTH_MAX);
}

interface RefsSearch {
  readonly label: string;
  readonly text: string;
  /** How many were found, in words. */
  readonly found: string;
  /** What else the list was asked for. */
  readonly keep?: Readonly<Record<string, string>>;
}

/** `action` is the address of the list. */
export function refsSearch(
  { repository }: PageRequest,
  action: string,
  { label, text, found, keep = {} }: RefsSearch,
): Html {
  const kept = Object.entries(keep).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
  return html`<form class="row search" action="${action}" role="search">${momentField(repository)}${kept}<label for="q" class="unseen">${label}</label><input id="q" name="q" type="search" value="${text}" maxlength="${SEARCH_LENGTH_MAX}" placeholder="${label}" autocapitalize="none" spellcheck="false"><button class="button">Find</button><span class="soft end" role="status">${found}</span></form>`;
}

/** Returns the title of a list of `things`, with what is searched for. */
export function searchedTitle(things: string, search: string): string {
  return search === '' ? things : `${things} with “${shownName(search)}”`;
}

/** What stands in place of a list at this address that has none of `things`, or when a search finds none. */
export function nothingFound(address: string, search: string, things: string): Html {
  if (search === '') {
    const above = address.replace(/\/[^/?]*(\?|$)/, '$1');
    return html`<section class="box empty"><h2>No ${things} yet</h2><p><a href="${above}">The repository’s page</a> has the commands for a first push.</p></section>`;
  }
  return html`<section class="box empty"><h2>Nothing matches “${shownName(search)}”</h2><p><a href="${address}">Show all ${things}</a></p></section>`;
}
