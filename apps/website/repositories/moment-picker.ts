/**
 * The moment on the bar of every page of a repository, today’s or an earlier one, with a field for another.
 *
 * Invariants: a page that can show the past leads to itself at that moment, every other page to the repository's home.
 * Pages cost no query for it: the pushes to choose from are on a page of their own, which the script moments.js puts in
 * the place of its link.
 */
import type { Timestamp } from '../../../core/kernel/ids.ts';
import { hiddenField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { changesAddress, MOMENT, repositoryAddress } from './addresses.ts';
import { momentShown } from './as-of.ts';
import type { AskedPage } from './asked-page.ts';

/** The address of a page below its repository, as a link leads back to it. Internal: of a longer one, to the home. */
const PLACE_LENGTH_MAX = 500;

/** What a query says of the moment, of a page of a list, or of a part of a diff: another moment has others. */
const OF_MOMENT: ReadonlySet<string> = new Set([MOMENT, 'page', 'size', 'before', 'file', 'files', 'context']);

/** The forms that write are for now alone. */
const FORM_PLACE = /^\/(?:edit|create|upload|move|remove)(?:\/|$)/;

/** The path of a page below its repository, as its client wrote it. */
function pathBelow({ target }: AskedPage['visit']): string {
  const [path = ''] = target.split(/[?#]/, 1);
  return path.replace(/^\/[^/]+\/[^/]+/, '').replace(/\/$/, '');
}

function keptQuery({ url }: AskedPage['visit']): readonly [string, string][] {
  const kept = [...url.searchParams].filter(([name]) => !OF_MOMENT.has(name));
  return new URLSearchParams(kept).toString().length > PLACE_LENGTH_MAX ? [] : kept;
}

/** The path of the page below the repository, with its query; empty for the home. */
function placeOf(visit: AskedPage['visit'], kept: readonly [string, string][]): string {
  const query = new URLSearchParams([...kept]).toString();
  const place = `${pathBelow(visit)}${query === '' ? '' : `?${query}`}`;
  return place.length > PLACE_LENGTH_MAX ? '' : place;
}

export function momentPicker(asked: AskedPage): Html {
  const { visit, repository, takesMoment } = asked;
  const home = repositoryAddress(repository);
  const staysHere = takesMoment === true && !FORM_PLACE.test(pathBelow(visit));
  const kept = staysHere ? keptQuery(visit) : [];
  // Without an action a form leads to the page that it is on, however long its path is.
  const action = !staysHere && html` action="${home}"`;
  const shown = momentShown(repository);
  const fields = html`${kept.map(([name, value]) => hiddenField(name, value))}${momentInput(
    { name: MOMENT, label: 'Date and time (UTC)' },
    shown ?? wholeSecond(visit.now),
  )}`;
  const choose = html`<button class="button" name="of" value="${staysHere ? placeOf(visit, kept) : ''}" formaction="${home}/moments" formnovalidate>Choose a push</button>`;
  const more = html`<p><a href="${changesAddress(repository)}">What changed between two moments</a></p>`;
  return html`<details class="pop moment"><summary class="button">As of ${
    shown === null ? 'now' : dateText(shown)
  }<span aria-hidden="true"> ▾</span></summary><div class="menu stack tight"><form class="stack tight"${action}>${fields}<div class="row"><button class="button main">Show</button>${choose}</div></form>${more}</div></details>`;
}

export function wholeSecond(at: Timestamp): string {
  return `${at.slice(0, 19)}.000Z`;
}

/** A field for a moment. Browsers send what it holds without an offset. */
export function momentInput({ name, label }: { readonly name: string; readonly label: string }, at: string): Html {
  const isWhole = at.endsWith('.000Z');
  return html`<div><label for="moment-${name}">${label}</label><input id="moment-${name}" name="${name}" type="datetime-local" value="${at.slice(
    0,
    isWhole ? 19 : 23,
  )}" step="${isWhole ? '1' : '0.001'}" required></div>`;
}

const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

function dateText(at: Timestamp): string {
  return DATE.format(new Date(at));
}
