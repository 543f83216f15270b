/**
 * Trying a token: which rule would let it in, and why the others would not.
 *
 * Invariants: nothing is exchanged and nothing is stored, and the token is in no page and no log. A token that is
 * meant for another account is told nothing about.
 */
import { IDENTITY_TOKEN_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import type { RateLimit } from '../../../core/ports/rate-limits.ts';
import type { RefusedExchange } from '../../../core/ports/refused-exchanges.ts';
import { tryIdentityToken } from '../../../core/use-cases/tokens/exchange-identity-token.ts';
import { type FoundTrustRule, listTrustRules } from '../../../core/use-cases/tokens/trust-rules.ts';
import { faultMessage } from '../../front-door/texts/refused-exchanges.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm, textArea } from '../layout/forms.ts';
import { type Content, type Html, html, NOTHING } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { grantsText } from '../tokens/words.ts';
import { audienceOf, pathOf, TRUST } from './rule-visit.ts';

/** Tokens that one account may try on the page of its trust rules within a minute. */
export const TOKEN_TRIALS_PER_MINUTE_MAX = 20;

const TRY = `${TRUST}/try`;
const TRIALS: RateLimit = { name: 'token-trials', timesMax: TOKEN_TRIALS_PER_MINUTE_MAX, spanMs: 60_000 };

export function trialRoutes({ context, page: addPage, formBeyondQuota }: Site): void {
  addPage(TRY, async (visit) => showTrial(visit, NEW_FORM));
  formBeyondQuota(TRY, async (visit, fields) => {
    const { account } = visit.person;
    const token = fields.text('token').trim();
    if (token === '') return showTrial(visit, wrongForm({ token: 'Paste a token' }));
    const waitSeconds = await context.rateLimits.take([{ limit: TRIALS, key: account }]);
    if (waitSeconds !== null) return showTrial(visit, refusedForm({ code: 'too-many-attempts', waitSeconds }, {}));
    const { judgement, used } = await tryIdentityToken(context, token);
    if (judgement.outcome === 'not-for-an-account' && judgement.why === 'malformed') {
      return showTrial(visit, wrongForm({ token: 'This is no signed JSON Web Token, or a very large one' }));
    }
    if (judgement.outcome === 'not-for-an-account' || judgement.account !== account) {
      const told = `The audience (aud) of the token must be exactly ${audienceOf(visit)}`;
      return showTrial(visit, wrongForm({ token: told }));
    }
    if (judgement.outcome === 'issuer-not-trusted') {
      return showTrial(visit, wrongForm({ token: 'No rule of yours names the issuer (iss) of the token' }));
    }
    const rules = new Map((await listTrustRules(context, account)).map((found) => [found.rule.id, found]));
    const lines = judgement.refusals.map((refusal) => refusalLine(refusal, rules.get(refusal.rule)));
    const matched = judgement.outcome === 'matched' ? rules.get(judgement.rule.id) : undefined;
    return showTrial(visit, NEW_FORM, verdict(matched, used, lines));
  });
}

function verdict(matched: FoundTrustRule | undefined, used: boolean, lines: readonly Html[]): Html {
  const title =
    matched === undefined
      ? html`<p class="note bad" role="status"><strong>No rule lets this token in.</strong></p>`
      : html`<p class="note" role="status"><strong>The rule <a href="${pathOf(matched.rule.id)}">${markInvisible(matched.rule.name)}</a> lets this token in.</strong> It gives: ${grantsText(matched.rule.grants)}.${used && ' But the token was exchanged before, and works once: the next one of the same job would be let in.'}</p>`;
  if (lines.length === 0) return title;
  const rest = matched === undefined ? 'Why not' : 'Older rules that do not match';
  return html`${title}<section class="box"><header><h2>${rest}</h2></header><div class="scroll" tabindex="0" role="group" aria-label="${rest}"><table><thead><tr><th scope="col">Rule</th><th scope="col">Why not</th><th scope="col">Asked for</th><th scope="col">Found</th></tr></thead><tbody>
${lines}</tbody></table></div></section>`;
}

function refusalLine(refusal: RefusedExchange, found: FoundTrustRule | undefined): Html {
  const { claim } = refusal;
  const name = found === undefined ? 'A deleted rule' : markInvisible(found.rule.name);
  const asked =
    claim === null ? undefined : claim === 'sub' ? found?.conditions.subject : found?.conditions.claims[claim];
  return html`<tr><td>${found === undefined ? name : html`<a href="${pathOf(found.rule.id)}">${name}</a>`}</td><td>${markInvisible(faultMessage(refusal, found?.conditions))}</td><td class="wrap">${codeOf(asked ?? null)}</td><td class="wrap">${codeOf(refusal.found)}</td></tr>
`;
}

function codeOf(text: string | null): Content {
  return text === null ? NOTHING : html`<code>${markInvisible(text)}</code>`;
}

/** The token is not shown again: it may still be good for an exchange. */
function showTrial(visit: PersonVisit, { errors, status, headers }: RefusedForm, result: Html = NOTHING): SiteAnswer {
  const title = 'Try a token';
  const content = html`<h1>${title}</h1><p class="soft">See which rule would let an identity token in, and why the others would not. Nothing is exchanged, and the token is not kept.</p>${result}${postForm(
    { action: TRY, csrf: visit.csrf(), errors },
    html`${textArea({
      name: 'token',
      label: 'Identity token',
      hint: 'As the CI system gave it to the job: three parts with dots between them.',
      error: errors['token'],
      required: true,
      lengthMax: IDENTITY_TOKEN_LENGTH_MAX,
      verbatim: true,
    })}<div class="row"><button class="button main">Try it</button><a class="button quiet" href="${TRUST}">Back to the rules</a></div>`,
  )}`;
  return showPage(page(visit, { title, width: 'middle' }, content), status, headers);
}
