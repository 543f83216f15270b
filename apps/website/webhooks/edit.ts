/** Changing a webhook's URL, events and state. */
import { changeWebhook, type FoundWebhook, refusalsOfWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { NEW_FORM, type RefusedForm, refusedForm, withAll, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { shortUrl } from './list.ts';
import { showSecret } from './secret-page.ts';
import { type EnteredWebhook, enteredIn, FIELD_OF, parseWebhook, webhookFields } from './webhook-form.ts';
import { pathOf, webhookOf, webhookOrigin } from './webhook-visit.ts';

export function editRoutes(site: Site): void {
  const { context } = site;
  site.page('/webhooks/:id/edit', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    const { events, active } = found.webhook;
    return showForm(visit, found, { url: found.url, events, active }, NEW_FORM);
  });
  site.form('/webhooks/:id/edit', async (visit, fields) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    const { id } = found.webhook;
    const entered = enteredIn(fields);
    const wanted = parseWebhook(entered);
    if ('errors' in wanted) return showForm(visit, found, entered, wrongForm(wanted.errors));
    const changed = await changeWebhook(context, await webhookOrigin(visit), id, wanted, context.newWebhookSecret());
    if ('refused' in changed) {
      if (changed.refused.code === 'webhook-not-found') return notFound(visit);
      const refusals = await refusalsOfWebhook(context, {
        ...wanted,
        url: wanted.url === found.url ? null : wanted.url,
      });
      return showForm(visit, found, entered, withAll(refusedForm(changed.refused, FIELD_OF), refusals, FIELD_OF));
    }
    if (changed.secret === null) return redirectTo(pathOf(id), 'The webhook is changed.');
    const text = html`Deliveries now go to <b>${shortUrl(changed.url)}</b>. The new receiver has a secret of its own, and never sees a signature of the old one.`;
    return showSecret(visit, { title: 'Webhook changed', text, secret: changed.secret, next: pathOf(id) });
  });
}

function showForm(
  visit: PersonVisit,
  { webhook, url }: FoundWebhook,
  entered: EnteredWebhook,
  { errors, status, headers }: RefusedForm,
): SiteAnswer {
  const content = html`<h1>Edit webhook</h1><p class="soft">A new URL gets a new secret. The repositories stay as they were chosen.</p>${postForm(
    { action: pathOf(webhook.id, '/edit'), csrf: visit.csrf(), errors },
    html`${webhookFields(entered, errors)}<div class="row"><button class="button main">Save changes</button><a class="button quiet" href="${pathOf(webhook.id)}">Cancel</a></div>`,
  )}`;
  return showPage(page(visit, { title: `Edit webhook ${shortUrl(url)}`, width: 'narrow' }, content), status, headers);
}
