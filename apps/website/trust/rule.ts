/** The page of one trust rule: what it asks for, what it gives, and which exchanges it refused. */
import type { CountedRefusal } from '../../../core/ports/refused-exchanges.ts';
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { listRefusedExchanges, type TrustRuleWithLastUse } from '../../../core/use-cases/tokens/list-trust-rules.ts';
import { faultMessage } from '../../front-door/texts/refused-exchanges.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { grantsText, repositoriesText } from '../tokens/words.ts';
import { pathOf, ruleOf, TRUST } from './rule-visit.ts';

export function ruleRoutes({ context, page: add }: Site): void {
  add(`${TRUST}/:id`, async (visit) => {
    const found = await ruleOf(context, visit);
    if (found === null) return notFound(visit);
    const refusals = await listRefusedExchanges(context, visit.person.account, found.rule.id);
    if ('refused' in refusals) return notFound(visit);
    return showRule(visit, found, { ...refusals, own: await listOwnRepositories(context, visit.person.account) });
  });
}

interface Shown {
  readonly refusals: readonly CountedRefusal[];
  readonly own: readonly OwnRepository[];
}

function showRule(visit: PersonVisit, found: TrustRuleWithLastUse, { refusals, own }: Shown): SiteAnswer {
  const { rule, conditions, lastUsedAt } = found;
  const name = markInvisible(rule.name);
  const claims = Object.entries(conditions.claims).map(
    ([claim, pattern]) =>
      html`<dt>${markInvisible(claim)}</dt><dd class="wrap"><code>${markInvisible(pattern)}</code></dd>`,
  );
  const used = lastUsedAt === null ? 'never used' : html`last used ${timeAgo(lastUsedAt, visit.now)}`;
  const head = html`<h1 class="title">${name}</h1><p>Created ${timeAgo(rule.createdAt, visit.now)} · ${used}</p>`;
  const content = html`<div class="row"><a class="button" href="${pathOf(rule.id, '/edit')}">Edit</a><a class="button" href="${TRUST}/try">Try a token</a><a class="button" href="/docs/ci">Examples</a><a class="button grave end" href="${pathOf(rule.id, '/delete')}">Delete…</a></div>
<section class="box"><header><h2>Lets in</h2></header><div class="inside"><dl class="facts"><dt>Issuer</dt><dd class="wrap"><code>${markInvisible(rule.issuer)}</code></dd><dt>Subject</dt><dd class="wrap"><code>${markInvisible(conditions.subject)}</code></dd>${claims}</dl></div></section>
<section class="box"><header><h2>Gives</h2></header><div class="inside"><dl class="facts"><dt>May</dt><dd>${grantsText(rule.grants)}</dd><dt>Repositories</dt><dd>${repositoriesText(rule.repositories, own)}</dd><dt>For</dt><dd>15 minutes</dd></dl></div></section>
${refusals.length === 0 ? noRefusals() : refusalTable(visit, found, refusals)}`;
  return showPage(page(visit, { title: `Trust rule ${name}`, head }, content));
}

function noRefusals(): Html {
  return html`<div class="box empty"><h2>No refused exchanges</h2><p>If a token of this issuer is refused, the reason stands here for 30 days. The job itself is not told.</p></div>`;
}

function refusalTable(
  visit: PersonVisit,
  { conditions }: TrustRuleWithLastUse,
  refusals: readonly CountedRefusal[],
): Html {
  const rows = refusals.map(
    (
      refusal,
    ) => html`<tr><td>${timeAgo(refusal.lastAt, visit.now)}</td><td>${markInvisible(faultMessage(refusal, conditions))}</td><td class="wrap">${
      refusal.found !== null && html`<code>${markInvisible(refusal.found)}</code>`
    }</td><td class="number">${refusal.times}</td></tr>
`,
  );
  return html`<section class="box"><header><h2>Refused exchanges</h2><span class="end soft">anybody can cause them</span></header><div class="scroll" tabindex="0" role="group" aria-label="Refused exchanges"><table><thead><tr><th scope="col">Last</th><th scope="col">Why</th><th scope="col">Found</th><th scope="col" class="number">Times</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}
