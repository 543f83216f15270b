/** The list of access tokens, and the page that asks before one is revoked. */
import type { OwnRepository } from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import type { AccessTokenWithLastUse } from '../../../core/use-cases/tokens/list-access-tokens.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { expiryText, grantsText, repositoriesText } from './words.ts';

/** Tokens on one page: a page stays small, however many tokens there are. */
const PAGE_TOKENS_MAX = 50;

export function showList(
  visit: PersonVisit,
  tokens: readonly AccessTokenWithLastUse[],
  own: readonly OwnRepository[],
): SiteAnswer {
  const title = 'Access tokens';
  const head = html`<div class="row"><h1>${title}</h1><a class="button main end" href="/access-tokens/create">New token</a></div>
<p class="soft">Git and the API take a token in place of your password.</p>`;
  return showPage(page(visit, { title, head }, tokens.length === 0 ? emptyList() : tableOf(visit, tokens, own)));
}

function emptyList(): Html {
  return html`<section class="box empty"><h2>No access tokens yet</h2>
<p>Create one to clone and push, or run <code>strata login</code> on the machine that needs one.</p></section>`;
}

function tableOf(visit: PersonVisit, tokens: readonly AccessTokenWithLastUse[], own: readonly OwnRepository[]): Html {
  const asked = Number(visit.url.searchParams.get('page') ?? '1');
  const pages = Math.ceil(tokens.length / PAGE_TOKENS_MAX);
  const number = Number.isInteger(asked) && asked >= 1 && asked <= pages ? asked : 1;
  const rows = tokens
    .slice((number - 1) * PAGE_TOKENS_MAX, number * PAGE_TOKENS_MAX)
    .map((token) => row(visit, token, own));
  return html`<section class="box"><div class="scroll" tabindex="0" role="region" aria-label="Access tokens"><table class="cards">
<thead><tr><th scope="col">Name</th><th scope="col">Permissions</th><th scope="col">Repositories</th><th scope="col">Expires</th><th scope="col">Last used</th></tr></thead>
<tbody>${rows}</tbody></table></div></section>${pages > 1 && pager(number, pages)}`;
}

function row(visit: PersonVisit, { token, lastUsedAt }: AccessTokenWithLastUse, own: readonly OwnRepository[]): Html {
  const { id, name, tokenPrefix, grants, expiresAt } = token;
  const shown = markInvisible(name);
  return html`<tr><td class="wrap"><strong>${shown}</strong><br><code class="soft">${tokenPrefix}…</code><br><small class="apart"><a href="/access-tokens/${id}" aria-label="Edit ${shown}">Edit</a> · <a href="/access-tokens/${id}/activity" aria-label="Activity of ${shown}">Activity</a> · <a href="/access-tokens/${id}/revoke" aria-label="Revoke ${shown}">Revoke</a></small></td><td data-label="Permissions">${grantsText(
    grants,
  )}</td><td data-label="Repositories">${repositoriesText(token, own)}</td><td data-label="Expires">${expiryText(expiresAt, visit.now)}</td><td data-label="Last used">${
    lastUsedAt === null ? html`<span class="soft">Never</span>` : timeAgo(lastUsedAt, visit.now)
  }</td></tr>
`;
}

function addressOf(number: number): string {
  return `/access-tokens?page=${number}`;
}

function pager(number: number, pages: number): Html {
  return html`<nav class="row" aria-label="Pages">${
    number > 1 && html`<a class="button" rel="prev" href="${addressOf(number - 1)}">Previous</a>`
  }<span class="soft">Page ${number} of ${pages}</span>${
    number < pages && html`<a class="button" rel="next" href="${addressOf(number + 1)}">Next</a>`
  }</nav>`;
}

export function showRevoke(visit: PersonVisit, { token, lastUsedAt }: AccessTokenWithLastUse): SiteAnswer {
  const title = `Revoke ${markInvisible(token.name)}`;
  const used = lastUsedAt === null ? 'It was never used.' : html`It was last used ${timeAgo(lastUsedAt, visit.now)}.`;
  const button = html`<div class="row"><button class="button grave">Revoke token</button> <a class="button quiet" href="/access-tokens">Cancel</a></div>`;
  const content = html`<h1>${title}</h1>
<p>Whatever uses the token <code>${token.tokenPrefix}…</code> fails from its next request on. ${used} This cannot be undone.</p>
${postForm({ action: `/access-tokens/${token.id}/revoke`, csrf: visit.csrf() }, button)}`;
  const pageTitle = `${title}, ${token.tokenPrefix}…`;
  return showPage(page(visit, { title: pageTitle, width: 'narrow' }, content));
}
