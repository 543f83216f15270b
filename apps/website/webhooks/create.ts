/** Creating a webhook. */
import { createWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { NEW_FORM, type RefusedForm, refusedForm, wrongForm } from '../layout/refused.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { shortUrl } from './list.ts';
import { showSecret } from './secret-page.ts';
import {
  type EnteredWebhook,
  enteredIn,
  FIELD_OF,
  NEW_WEBHOOK_ENTERED,
  parseWebhook,
  webhookFields,
} from './webhook-form.ts';
import { pathOf, webhookOrigin } from './webhook-visit.ts';

const CREATE = '/webhooks/create';

export function createRoutes(site: Site): void {
  const { context } = site;
  site.page(CREATE, async (visit) => showForm(visit, NEW_WEBHOOK_ENTERED, NEW_FORM));
  site.form(CREATE, async (visit, fields) => {
    const entered = enteredIn(fields);
    const wanted = parseWebhook(entered);
    if ('errors' in wanted) return showForm(visit, entered, wrongForm(wanted.errors));
    const secret = context.newWebhookSecret();
    const created = await createWebhook(context, await webhookOrigin(visit), wanted, secret);
    if ('refused' in created) return showForm(visit, entered, refusedForm(created.refused, FIELD_OF));
    const text = html`Deliveries go to <b>${shortUrl(created.url)}</b>.`;
    return showSecret(visit, { title: 'Webhook created', text, secret, next: pathOf(created.webhook.id) });
  });
}

function showForm(visit: PersonVisit, entered: EnteredWebhook, { errors, status, headers }: RefusedForm): SiteAnswer {
  const content = html`<h1>New webhook</h1><p class="soft">It gets the events of ALL repositories of your account, also of those that you create later. A webhook for some of them only is created with an access token of scope SELECTED_REPO.</p>${postForm(
    { action: CREATE, csrf: visit.csrf(), errors },
    html`${webhookFields(entered, errors)}<div class="row"><button class="button main">Create webhook</button><a class="button quiet" href="/webhooks">Cancel</a></div>`,
  )}`;
  return showPage(page(visit, { title: 'New webhook', width: 'narrow' }, content), status, headers);
}
