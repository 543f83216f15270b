/** The page of one webhook: what it is, what can be done with it, and its newest deliveries. */
import { PAGE_LIMIT_DEFAULT } from '../../../core/kernel/limits.ts';
import type { WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import { listWebhookDeliveries } from '../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import type { FoundWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { buttonForm } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { attemptLine } from './attempts.ts';
import { shortUrl } from './list.ts';
import { pathOf, viewerOf, webhookOf } from './webhook-visit.ts';

/** Pending deliveries whose attempts the list shows; a page has those of the others. */
export const OPEN_MAX = 3;

export function webhookRoutes({ context, page: add }: Site): void {
  add('/webhooks/:id', async (visit) => {
    const found = await webhookOf(context, visit);
    if (found === null) return notFound(visit);
    const listed = await listWebhookDeliveries(context, {
      viewer: viewerOf(visit),
      webhook: found.webhook.id,
      seen: visit.position,
      limit: PAGE_LIMIT_DEFAULT,
      withPayloads: false,
    });
    if ('refused' in listed) return notFound(visit);
    return showWebhook(
      visit,
      found,
      listed.map(({ delivery }) => delivery),
    );
  });
}

function showWebhook(
  visit: PersonVisit,
  { webhook, url }: FoundWebhook,
  deliveries: readonly WebhookDeliveryRow[],
): SiteAnswer {
  const { id, events, active, createdAt, repositories } = webhook;
  const count = repositories.repositoryIds.length;
  const about = repositories.scope === 'ALL_REPO' ? 'every repository' : `${count} chosen by the token that created it`;
  const head = html`<h1 class="title">${shortUrl(url)}</h1><p>${events.join(', ')} · ${about} · ${
    active ? 'active' : html`<b>inactive</b>`
  } · created ${timeAgo(createdAt, visit.now)}</p>`;
  const ping = buttonForm(
    { action: pathOf(id, '/ping'), csrf: visit.csrf() },
    html`<button class="button">Send a ping</button>`,
  );
  const content = html`<div class="row">${ping}<a class="button" href="${pathOf(id, '/edit')}">Edit</a><a class="button" href="${pathOf(id, '/secret')}">Rotate secret…</a><a class="button grave end" href="${pathOf(id, '/delete')}">Delete…</a></div>${
    deliveries.length === 0 ? noDeliveries() : deliveryTable(visit, id, deliveries)
  }`;
  return showPage(page(visit, { title: `Webhook ${shortUrl(url)}`, head }, content));
}

function noDeliveries(): Html {
  return html`<div class="box empty"><h2>No deliveries yet</h2><p>Push to a repository, or send a ping: what your server answers stands here.</p></div>`;
}

export function deliveryTable(
  visit: Pick<PersonVisit, 'now'>,
  webhook: FoundWebhook['webhook']['id'],
  deliveries: readonly WebhookDeliveryRow[],
): Html {
  let open = 0;
  const rows = deliveries.map((delivery) => {
    if (delivery.status === 'PENDING') open += 1;
    return deliveryRow(visit, webhook, delivery, delivery.status === 'PENDING' && open <= OPEN_MAX);
  });
  return html`<section class="box"><header><h2>Deliveries</h2><span class="end soft">the newest ${deliveries.length}</span></header><div class="scroll" tabindex="0" role="group" aria-label="Deliveries"><table><thead><tr><th>When</th><th>Event</th><th>Status</th><th class="number">Code</th><th class="number wide">Attempts</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}

const STATUSES = {
  PENDING: ['pending', 'warn'],
  SUCCESS: ['delivered', 'good'],
  FAILED: ['failed', 'bad'],
} as const;

export function statusMark(status: WebhookDeliveryRow['status']): Html {
  const [text, colour] = STATUSES[status];
  return html`<span class="mark ${colour}">${text}</span>`;
}

function deliveryRow(
  visit: Pick<PersonVisit, 'now'>,
  webhook: FoundWebhook['webhook']['id'],
  delivery: WebhookDeliveryRow,
  isOpen: boolean,
): Html {
  const { id, event, status, createdAt, nextAttemptAt, attemptLog } = delivery;
  const attempts = isOpen && attemptLine(delivery);
  return html`<tr><td>${timeAgo(createdAt, visit.now)}</td><td><a href="${pathOf(webhook, `/deliveries/${id}`)}">${event}</a></td><td>${statusMark(status)}</td><td class="number">${
    attemptLog.at(-1)?.httpStatus ?? '—'
  }</td><td class="number wide">${attemptLog.length}</td></tr>
${
  attempts !== false &&
  html`<tr class="open"><td colspan="5"><h2>Attempts${
    nextAttemptAt !== null && html`: the next ${timeAgo(nextAttemptAt, visit.now)}`
  }</h2>${attempts}</td></tr>
`
}`;
}
