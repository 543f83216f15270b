/** Deleting a trust rule, which a page of its own asks about. */
import { deleteTrustRule } from '../../../core/use-cases/tokens/trust-rules.ts';
import { redirectTo, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { pathOf, ruleOf, TRUST } from './rule-visit.ts';

const DELETE = `${TRUST}/:id/delete`;

export function deletionRoutes({ context, page: addPage, formBeyondQuota }: Site): void {
  addPage(DELETE, async (visit) => {
    const found = await ruleOf(context, visit);
    if (found === null) return notFound(visit);
    const { id, name } = found.rule;
    const title = `Delete ${markInvisible(name)}`;
    const content = html`<h1>${title}</h1><p>Jobs that only <b>${markInvisible(name)}</b> let in get no token any more, and the tokens that it has given out end now. This cannot be undone.</p>${postForm(
      { action: pathOf(id, '/delete'), csrf: visit.csrf() },
      html`<div class="row"><button class="button grave">Delete rule</button><a class="button quiet" href="${pathOf(id)}">Cancel</a></div>`,
    )}`;
    return showPage(page(visit, { title: `${title} · Trust rules`, width: 'narrow' }, content));
  });
  formBeyondQuota(DELETE, async (visit) => {
    const found = await ruleOf(context, visit);
    if (found === null) return notFound(visit);
    const deleted = await deleteTrustRule(context, await visit.origin(null), found.rule.id);
    return 'refused' in deleted ? notFound(visit) : redirectTo(TRUST, 'The trust rule is deleted.');
  });
}
