/** The list of trust rules, in the order in which they are compared with a token. */
import { TRUST_RULES_MAX } from '../../../core/kernel/limits.ts';
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { listRulesWithLastUse, type TrustRuleWithLastUse } from '../../../core/use-cases/tokens/list-trust-rules.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { grantsText, repositoriesText } from '../tokens/words.ts';
import { audienceOf, pathOf, TRUST } from './rule-visit.ts';

export function listRoutes({ context, page: add }: Site): void {
  add(TRUST, async (visit) => {
    const { account } = visit.person;
    return showList(visit, await listRulesWithLastUse(context, account), await listOwnRepositories(context, account));
  });
}

function showList(
  visit: PersonVisit,
  rules: readonly TrustRuleWithLastUse[],
  own: readonly OwnRepository[],
): SiteAnswer {
  const title = 'CI trust';
  const isFull = rules.length >= TRUST_RULES_MAX;
  const head = html`<div class="row"><h1 class="title">${title}</h1>${!isFull && html`<a class="button main end" href="${TRUST}/create">New trust rule</a>`}</div><p>Jobs of a CI system exchange their identity token for an access token of 15 minutes. No secret is stored.</p>`;
  const full =
    isFull &&
    html`<span class="soft">An account has at most ${TRUST_RULES_MAX} trust rules. Delete one to create another.</span>`;
  const content = html`${rules.length === 0 ? emptyList() : tableOf(visit, rules, own)}<div class="row"><a class="button" href="${TRUST}/try">Try a token</a><a class="button" href="/docs/ci">Examples</a>${full}</div>
<h2>Audience</h2><p class="soft">Every identity token must have exactly this audience, which names your account.</p>${copyBox(audienceOf(visit), 'the audience')}`;
  return showPage(page(visit, { title, head }, content));
}

/** What the list shows of a text: the page of a rule shows all of it. */
export const SHOWN_LENGTH_MAX = 120;

export function shortenedText(text: string): string {
  return markInvisible(text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text);
}

function emptyList(): Html {
  return html`<div class="box empty"><h2>No trust rules yet</h2><p>A rule names an issuer, such as GitHub Actions, and the jobs of it that you let in.</p></div>`;
}

function tableOf(visit: PersonVisit, rules: readonly TrustRuleWithLastUse[], own: readonly OwnRepository[]): Html {
  return html`<section class="box"><header><h2>Rules</h2><span class="end soft">the first that matches decides</span></header><div class="scroll" tabindex="0" role="group" aria-label="Trust rules"><table class="cards"><thead><tr><th scope="col">Name</th><th scope="col">Lets in</th><th scope="col">May</th><th scope="col">Repositories</th><th scope="col">Last used</th></tr></thead><tbody>
${rules.map((rule) => rowOf(visit, rule, own))}</tbody></table></div></section>`;
}

function rowOf(
  visit: PersonVisit,
  { rule, conditions, lastUsedAt }: TrustRuleWithLastUse,
  own: readonly OwnRepository[],
): Html {
  return html`<tr><td><a href="${pathOf(rule.id)}">${markInvisible(rule.name)}</a></td><td class="wrap" data-label="Lets in"><span><code>${shortenedText(conditions.subject)}</code><br><span class="soft">${shortenedText(rule.issuer)}</span></span></td><td data-label="May">${grantsText(
    rule.grants,
  )}</td><td data-label="Repositories">${repositoriesText(rule.repositories, own)}</td><td data-label="Last used">${
    lastUsedAt === null ? html`<span class="soft">Never</span>` : timeAgo(lastUsedAt, visit.now)
  }</td></tr>
`;
}
