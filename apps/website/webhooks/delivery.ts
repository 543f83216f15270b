/**
 * The page of one delivery: its attempts, what was sent and what came back.
 *
 * Invariants: bodies are shown as text and cut, so that no receiver and no commit message makes a page large. The
 * whole payload is an attachment that no browser runs.
 */
import { parseUuid, type WebhookDeliveryId, type WebhookId } from '../../../core/kernel/ids.ts';
import { startOfText } from '../../../core/kernel/text.ts';
import type { AttemptRow } from '../../../core/ports/webhook-delivery-lists.ts';
import { signaturesOf } from '../../../core/use-cases/webhooks/attempt-delivery.ts';
import { readWebhookDelivery } from '../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import { redeliver } from '../../../core/use-cases/webhooks/webhook-deliveries.ts';
import { deferralText } from '../../front-door/texts/attempt-errors.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showContent, showPage } from '../layout/answer.ts';
import { buttonForm } from '../layout/forms.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { aboutOf } from './about.ts';
import { attemptLine, attemptText, outcomeText } from './attempts.ts';
import { shortUrl } from './list.ts';
import { statusMark } from './webhook.ts';
import { pathOf, viewerOf, webhookOrigin } from './webhook-visit.ts';

/** UTF-16 code units of a body on the page: escaped, each takes up to six bytes. */
export const SHOWN_LENGTH_MAX = 4_096;
/** Attempts in the log on the page: the newest. A delivery may have hundreds. */
export const ATTEMPTS_SHOWN_MAX = 16;

type Read = Exclude<Awaited<ReturnType<typeof readWebhookDelivery>>, { readonly refused: object }>;

export function deliveryRoutes(site: Site): void {
  const { context } = site;
  site.page('/webhooks/:id/deliveries/:delivery', async (visit) => {
    const read = await deliveryOf(context, visit);
    if (read === null) return notFound(visit);
    const { webhook, payload } = read;
    const signed = payload === null ? null : await signaturesOf(context, visit.person.account, webhook, payload);
    return showDelivery(visit, read, signed ?? {});
  });
  site.page('/webhooks/:id/deliveries/:delivery/payload', async (visit) => {
    const read = await deliveryOf(context, visit);
    if (read === null || read.payload === null) return notFound(visit);
    return showContent(read.payload, {
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': `attachment; filename="${read.delivery.id}.json"`,
      'content-security-policy': "default-src 'none'; sandbox",
    });
  });
  site.formBeyondQuota('/webhooks/:id/deliveries/:delivery/redeliver', async (visit) => {
    const ids = idsIn(visit);
    if (ids === null) return notFound(visit);
    const again = await redeliver(context, await webhookOrigin(visit), ids.webhook, ids.delivery);
    const path = pathOf(ids.webhook, `/deliveries/${ids.delivery}`);
    if (!('refused' in again)) return redirectTo(path, 'The delivery is sent again.');
    if (again.refused.code === 'webhook-not-found') return notFound(visit);
    return redirectTo(path, `${refusalText(again.refused)}.`, 'failed');
  });
}

function idsIn({ params }: PersonVisit): { readonly webhook: WebhookId; readonly delivery: WebhookDeliveryId } | null {
  const webhook = parseUuid<WebhookId>(params['id'] ?? '');
  const delivery = parseUuid<WebhookDeliveryId>(params['delivery'] ?? '');
  return webhook === null || delivery === null ? null : { webhook, delivery };
}

async function deliveryOf(context: SiteContext, visit: PersonVisit): Promise<Read | null> {
  const ids = idsIn(visit);
  if (ids === null) return null;
  const read = await readWebhookDelivery(context, { viewer: viewerOf(visit), seen: visit.position, ...ids });
  return 'refused' in read ? null : read;
}

function showDelivery(visit: PersonVisit, read: Read, signatures: Readonly<Record<string, string>>): SiteAnswer {
  const { webhook, url, delivery, answer, payload, waits } = read;
  const { id, event, eventId, status, createdAt, nextAttemptAt } = delivery;
  const path = pathOf(webhook.id, `/deliveries/${id}`);
  const head = html`<h1 class="title">${event} to ${shortUrl(url)}</h1><p>${statusMark(status)}${payload !== null && aboutText(payload)} requested ${timeAgo(createdAt, visit.now)}${
    nextAttemptAt !== null && html`, the next attempt ${timeAgo(nextAttemptAt, visit.now)}`
  }</p>`;
  const again = buttonForm(
    { action: `${path}/redeliver`, csrf: visit.csrf() },
    html`<button class="button">Redeliver</button>`,
  );
  const content = html`<div class="row"><a class="button" href="${pathOf(webhook.id)}">All deliveries</a>${
    status !== 'PENDING' && payload !== null && again
  }</div>
<section class="box"><header><h2>Attempts</h2><span class="end soft">${attemptText(delivery)}</span></header><div class="inside stack">${deferral(delivery)}${attemptLine(delivery)}${attemptLog(visit, delivery.attemptLog)}</div></section>
<section class="box"><header><h2>Request</h2>${
    payload !== null && html`<a class="end" href="${path}/payload">Download payload</a>`
  }</header><div class="inside stack"><dl class="facts"><dt>X-Service-Event</dt><dd><code>${event}</code></dd><dt>X-Service-Event-Id</dt><dd><code>${eventId}</code></dd><dt>X-Service-Delivery</dt><dd><code>${id}</code></dd>${signatureFacts(signatures)}</dl>${bodyText(
    payload === null ? null : indented(payload),
    waits ? 'The payload is made when the hour of the delivery comes.' : 'The payload is no longer kept.',
  )}</div></section>
<section class="box"><header><h2>Last response</h2></header><div class="inside stack">${bodyText(
    answer === null ? null : new TextDecoder().decode(answer),
    'No response is kept.',
  )}</div></section>`;
  return showPage(page(visit, { title: `Delivery ${id}`, head }, content));
}

/** The names as receivers know them; a secret that was rotated since signs otherwise than the one before it. */
const SIGNATURES: Readonly<Record<string, string>> = {
  'x-service-signature': 'X-Service-Signature',
  'x-service-signature-previous': 'X-Service-Signature-Previous',
};

function signatureFacts(signatures: Readonly<Record<string, string>>): Content {
  return Object.entries(SIGNATURES).map(([header, shown]) => {
    const signature = signatures[header];
    return (
      signature !== undefined &&
      html`<dt>${shown}</dt><dd><code>${signature}</code> <span class="soft">by the current secret</span></dd>`
    );
  });
}

/** The repository and the ref that the delivery tells of. */
function aboutText(payload: string): Content {
  const about = aboutOf(payload);
  return (
    about !== null && html` about <a href="/${about.repository}">${about.repository}</a>, <bdi>${about.ref}</bdi>,`
  );
}

function deferral(delivery: Read['delivery']): Content {
  const text = deferralText(delivery);
  return text !== null && html`<p><b>${text}</b></p>`;
}

export function attemptLog(visit: Pick<PersonVisit, 'now'>, attempts: readonly AttemptRow[]): Content {
  if (attempts.length === 0) return html`<p class="soft">No attempt yet.</p>`;
  const shown = attempts.slice(-ATTEMPTS_SHOWN_MAX).toReversed();
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Attempts"><table class="cards"><thead><tr><th>When</th><th>Outcome</th><th class="number">Code</th><th class="number">Took</th></tr></thead><tbody>
${shown.map(
  (attempt) =>
    html`<tr><td>${timeAgo(attempt.at, visit.now)}</td><td data-label="Outcome">${outcomeText(attempt)}</td><td class="number" data-label="Code">${
      attempt.httpStatus ?? '—'
    }</td><td class="number" data-label="Took">${attempt.durationMs} ms</td></tr>
`,
)}</tbody></table></div>${
    attempts.length > shown.length &&
    html`<p class="soft">The newest ${shown.length} of ${attempts.length} attempts.</p>`
  }`;
}

export function bodyText(body: string | null, none: string): Html {
  if (body === null) return html`<p class="soft">${none}</p>`;
  if (body === '') return html`<p class="soft">The body is empty.</p>`;
  const isCut = body.length > SHOWN_LENGTH_MAX;
  return html`<pre class="payload" tabindex="0">${startOfText(body, SHOWN_LENGTH_MAX)}</pre>${
    isCut && html`<p class="soft">The first ${SHOWN_LENGTH_MAX} of ${body.length} characters.</p>`
  }`;
}

/**
 * Returns the payload with each field on a line of its own, to be read: the signature is over the bytes as they were
 * sent. Only for what this service wrote, because the depth of a receiver's JSON would multiply its length.
 */
function indented(payload: string): string {
  return JSON.stringify(JSON.parse(payload), null, 2);
}
