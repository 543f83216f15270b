/** Creating a trust rule. */
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { createTrustRule } from '../../../core/use-cases/tokens/trust-rules.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type FieldErrors, postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { choiceSent, NEW_RULE, parseRule, type RuleChoice, ruleFields, saveRule } from './rule-form.ts';
import { pathOf, ruleOrigin, TRUST } from './rule-visit.ts';

const CREATE = `${TRUST}/create`;

export function createRoutes({ context, page: addPage, form }: Site): void {
  addPage(CREATE, async (visit) => {
    const own = await listOwnRepositories(context, visit.person.account);
    return showForm(visit, { choice: NEW_RULE, own, errors: {} });
  });
  form(CREATE, async (visit, fields) => {
    const own = await listOwnRepositories(context, visit.person.account);
    const origin = await ruleOrigin(visit);
    const created = await saveRule(context, parseRule(fields, own), (wanted) =>
      createTrustRule(context, origin, wanted),
    );
    if ('errors' in created) return showForm(visit, { choice: choiceSent(fields), own, errors: created.errors });
    return redirectTo(pathOf(created.rule.id), 'The trust rule is created.');
  });
}

interface FormState {
  readonly choice: RuleChoice;
  readonly own: readonly OwnRepository[];
  readonly errors: FieldErrors;
}

function showForm(visit: PersonVisit, { choice, own, errors }: FormState): SiteAnswer {
  const content = html`<h1>New trust rule</h1><p class="soft">Jobs that match it get a token of 15 minutes.</p>${postForm(
    { action: CREATE, csrf: visit.csrf(), errors },
    html`${ruleFields(choice, own, errors)}<div class="row"><button class="button main">Create rule</button><a class="button quiet" href="${TRUST}">Cancel</a></div>`,
  )}`;
  const status = Object.keys(errors).length === 0 ? 200 : 422;
  return showPage(page(visit, { title: 'New trust rule', width: 'narrow' }, content), status);
}
