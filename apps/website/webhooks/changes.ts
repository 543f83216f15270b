/** What a button does to a webhook: a ping, a new secret, its deletion. The last two ask on a page of their own. */
import { pingWebhook } from '../../../core/use-cases/webhooks/webhook-deliveries.ts';
import { deleteWebhook, rotateWebhookSecret } from '../../../core/use-cases/webhooks/webhooks.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { postForm } from '../layout/forms.ts';
import { type Content, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { shortUrl } from './list.ts';
import { showSecret } from './secret-page.ts';
import { pathOf, webhookOf, webhookOrigin } from './webhook-visit.ts';

export function changeRoutes(site: Site): void {
  const { context } = site;
  site.formBeyondQuota('/webhooks/:id/ping', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    const pinged = await pingWebhook(context, await webhookOrigin(visit), found.webhook.id);
    if ('refused' in pinged) return notFound(visit);
    return redirectTo(pathOf(found.webhook.id, `/deliveries/${pinged.deliveryId}`), 'The ping is on its way.');
  });
  site.page('/webhooks/:id/secret', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    return ask(visit, {
      title: 'Rotate secret',
      of: shortUrl(found.url),
      text: html`<p>Deliveries to <b>${shortUrl(found.url)}</b> get a new secret. The old one also signs for 24 hours, in <code>X-Service-Signature-Previous</code>, so that you can change your server. This cannot be undone.</p>`,
      action: pathOf(found.webhook.id, '/secret'),
      button: html`<button class="button main">Rotate secret</button>`,
      cancel: pathOf(found.webhook.id),
    });
  });
  site.form('/webhooks/:id/secret', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    const { id } = found.webhook;
    const secret = context.newWebhookSecret();
    const rotated = await rotateWebhookSecret(context, await webhookOrigin(visit), id, secret);
    if ('refused' in rotated) return notFound(visit);
    const text = 'The old secret also signs for 24 hours.';
    return showSecret(visit, { title: 'Secret rotated', text, secret, next: pathOf(id) });
  });
  site.page('/webhooks/:id/delete', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    return ask(visit, {
      title: 'Delete webhook',
      of: shortUrl(found.url),
      text: html`<p><b>${shortUrl(found.url)}</b> gets no further request, and deliveries that are still pending fail. This cannot be undone.</p>`,
      action: pathOf(found.webhook.id, '/delete'),
      button: html`<button class="button grave">Delete webhook</button>`,
      cancel: pathOf(found.webhook.id),
    });
  });
  site.formBeyondQuota('/webhooks/:id/delete', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    const deleted = await deleteWebhook(context, await webhookOrigin(visit), found.webhook.id);
    if ('refused' in deleted) return notFound(visit);
    return redirectTo('/webhooks', 'The webhook is deleted.');
  });
}

interface Question {
  readonly title: string;
  /** The webhook, for the title of the browser. */
  readonly of: string;
  readonly text: Content;
  readonly action: string;
  readonly button: Content;
  readonly cancel: string;
}

function ask(visit: PersonVisit, { title, of, text, action, button, cancel }: Question): SiteAnswer {
  const content = html`<h1>${title}</h1>${text}${postForm(
    { action, csrf: visit.csrf() },
    html`<div class="row">${button}<a class="button quiet" href="${cancel}">Cancel</a></div>`,
  )}`;
  return showPage(page(visit, { title: `${title} of ${of}`, width: 'narrow' }, content));
}
