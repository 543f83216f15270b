/** Changing a trust rule. */
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { changeTrustRule, type FoundTrustRule } from '../../../core/use-cases/tokens/trust-rules.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type FieldErrors, postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { choiceOf, choiceSent, parseRule, type RuleChoice, ruleFields, saveRule } from './rule-form.ts';
import { pathOf, ruleOf, ruleOrigin, TRUST } from './rule-visit.ts';

const EDIT = `${TRUST}/:id/edit`;

export function editRoutes({ context, page: addPage, form }: Site): void {
  addPage(EDIT, async (visit) => {
    const found = await ruleOf(context, visit);
    if (found === null) return notFound(visit);
    const own = await listOwnRepositories(context, visit.person.account);
    return showForm(visit, found, { choice: choiceOf(found, own), own, errors: {} });
  });
  form(EDIT, async (visit, fields) => {
    const found = await ruleOf(context, visit);
    if (found === null) return notFound(visit);
    const { id } = found.rule;
    const own = await listOwnRepositories(context, visit.person.account);
    const origin = await ruleOrigin(visit);
    const changed = await saveRule(context, { ...parseRule(fields, own), kept: found.rule.issuer }, (wanted) =>
      changeTrustRule(context, origin, id, wanted),
    );
    if (!('errors' in changed)) return redirectTo(pathOf(id), 'The trust rule is changed.');
    if (changed.refused?.code === 'trust-rule-not-found') return notFound(visit);
    return showForm(visit, found, { choice: choiceSent(fields), own, errors: changed.errors });
  });
}

interface FormState {
  readonly choice: RuleChoice;
  readonly own: readonly OwnRepository[];
  readonly errors: FieldErrors;
}

function showForm(visit: PersonVisit, { rule }: FoundTrustRule, { choice, own, errors }: FormState): SiteAnswer {
  const title = `Edit ${markInvisible(rule.name)}`;
  const content = html`<h1>${title}</h1><p class="soft">A change ends the tokens that the rule has given out.</p>${postForm(
    { action: pathOf(rule.id, '/edit'), csrf: visit.csrf(), errors },
    html`${ruleFields(choice, own, errors)}<div class="row"><button class="button main">Save changes</button><a class="button quiet" href="${pathOf(rule.id)}">Cancel</a></div>`,
  )}`;
  const status = Object.keys(errors).length === 0 ? 200 : 422;
  return showPage(page(visit, { title: `${title} · Trust rules`, width: 'narrow' }, content), status);
}
