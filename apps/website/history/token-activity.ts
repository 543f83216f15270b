/**
 * What became of an access token, and what was done with it: also after it was revoked.
 *
 * Invariants: another account's token and an id of no token get the same page.
 */
import { type AccessTokenId, parseUuid } from '../../../core/kernel/ids.ts';
import { type LogNames, namesInLog } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import {
  type OpenedTokenUse,
  readTokenActivity,
  type TokenActivity,
  type TokenActivityPlace,
  type TokenChange,
} from '../../../core/use-cases/tokens/token-activity.ts';
import { TOKEN_ACTIVITY_QUERY } from '../../api/schemas/token-activity.ts';
import { activityPlaceText } from '../../front-door/list-places.ts';
import type { SiteContext } from '../context.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { shownName } from '../repositories/shown-text.ts';
import { expiryText, grantsText, repositoriesText } from '../tokens/words.ts';
import { historyAddress } from './filters.ts';

const BEGINNING: TokenActivityPlace = { changes: 0, used: null };
/** Rows on a page of changes, and of uses: they are long. */
const PAGE_ROWS = 25;

export async function showTokenActivity(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const token = parseUuid<AccessTokenId>(visit.params['id'] ?? '');
  const text = visit.url.searchParams.get('after');
  const asked = TOKEN_ACTIVITY_QUERY.safeParse(text === null ? {} : { after: text });
  if (token === null || !asked.success) return notFound(visit);
  const { account } = visit.person;
  const { after: from = BEGINNING } = asked.data;
  const activity = await readTokenActivity(context, { account, token, seen: visit.position, from, limit: PAGE_ROWS });
  if ('refused' in activity) return notFound(visit);
  const names = await namesInLog(context, account, {
    repositories: [
      ...activity.used.map(({ repositoryId }) => repositoryId),
      ...activity.changes.flatMap(({ repositoryIds }) => repositoryIds),
    ],
    tokens: [token],
  });
  const name = names.tokens.get(token);
  const title = name === undefined ? 'What a token did' : `What ${shownName(name)} did`;
  const home = `/access-tokens/${token}/activity`;
  const next = `${home}?${new URLSearchParams({ after: activityPlaceText(activity.next) }).toString()}`;
  const head = html`<h1 class="title">${title}</h1><p>${
    name === undefined
      ? 'This token is in no list any more: it was revoked, or it was exchanged for a token of CI.'
      : 'Oldest first.'
  } Its events are in <a href="${historyAddress({ by: token })}">the history</a>.</p>`;
  const content = html`${changesBox(visit, activity, names)}${usesBox(visit, activity, names)}<nav class="row pager" aria-label="Pages">${
    text !== null && html`<a class="button" rel="first" href="${home}">Oldest</a>`
  }${activity.hasMore && html`<a class="button" rel="next" href="${next}">Newer</a>`}<a class="button quiet" href="/access-tokens">Access tokens</a></nav>`;
  const part = text === null ? '' : `, after ${text}`;
  return showPage(page(visit, { title: `${title}${name === undefined ? `: ${token}` : ''}${part}`, head }, content));
}

function changesBox(visit: PersonVisit, { changes }: TokenActivity, names: LogNames): Content {
  if (changes.length === 0) return null;
  const rows = changes.map((change) => changeRow(visit, change, names));
  return html`<section class="box" aria-labelledby="changes"><header><h2 id="changes">What it was allowed</h2></header><div class="scroll" tabindex="0" role="group" aria-label="What it was allowed"><table class="cards"><thead><tr><th scope="col">From</th><th scope="col">Permissions</th><th scope="col">Repositories</th><th scope="col">Expires</th><th scope="col">Event</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}

function changeRow(visit: PersonVisit, change: TokenChange, { repositories }: LogNames): Html {
  const own = [...repositories].map(([id, name]) => ({ id, name }));
  const { at, eventId, grants, expiresAt, revoked } = change;
  const event = html`<a href="/history/${eventId}">Event<span class="unseen"> of ${at}</span></a>`;
  return html`<tr><td>${timeAgo(at, visit.now)}${revoked && html` <span class="mark bad">revoked</span>`}</td><td data-label="Permissions">${grantsText(
    grants,
  )}</td><td class="wrap" data-label="Repositories">${repositoriesText(change, own)}</td><td data-label="Expires">${expiryText(expiresAt, visit.now)}</td><td>${event}</td></tr>
`;
}

function usesBox(visit: PersonVisit, { used }: TokenActivity, names: LogNames): Html {
  if (used.length === 0) {
    return html`<section class="box"><p class="empty">Nothing was done with it${
      visit.url.searchParams.has('after') && ' after that'
    }. Reads of the last minute are not in the log yet.</p></section>`;
  }
  const rows = used.map((use) => useRow(visit, use, names));
  return html`<section class="box" aria-labelledby="used"><header><h2 id="used">What was done with it</h2><span class="end soft">by the minute</span></header><div class="scroll" tabindex="0" role="group" aria-label="What was done with it"><table class="cards"><thead><tr><th scope="col">When</th><th scope="col">Repository</th><th scope="col" class="number">Reads</th><th scope="col" class="number">Writes</th><th scope="col">Wrote from</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}

/** Addresses that a row names; the others are counted. */
export const ADDRESSES_NAMED_MAX = 3;

export function useRow(
  visit: Pick<PersonVisit, 'now'>,
  use: OpenedTokenUse,
  { repositories }: Pick<LogNames, 'repositories'>,
): Html {
  const { minute, repositoryId, reads, writes } = use;
  const addresses = [...new Set([...use.addresses.values()].map(({ value }) => value))];
  const shown = addresses.slice(0, ADDRESSES_NAMED_MAX).map((address) => shownName(address));
  const more = addresses.length - shown.length;
  const from = more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
  return html`<tr><td>${timeAgo(minute, visit.now)}</td><td class="wrap" data-label="Repository">${
    repositories.get(repositoryId) ?? 'a deleted one'
  }</td><td class="number" data-label="Reads">${reads}</td><td class="number" data-label="Writes">${writes}</td><td class="wrap" data-label="Wrote from">${from}</td></tr>
`;
}
