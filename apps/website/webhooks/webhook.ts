/** The page of one webhook: what it is, what can be done with it, and its newest deliveries. */
import { PAGE_LIMIT_DEFAULT } from '../../../core/kernel/limits.ts';
import { cutText } from '../../../core/kernel/text.ts';
import { WEBHOOK_EVENT_KINDS, type WebhookEventKind } from '../../../core/kernel/webhook-events.ts';
import type { WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { listWebhookDeliveries } from '../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import type { FoundWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { buttonForm, type Option, selectField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { repositoriesText } from '../tokens/words.ts';
import { aboutAll, type DeliveryAbout } from './about.ts';
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
      withPayloads: true,
    });
    if ('refused' in listed) return notFound(visit);
    const abouts = await aboutAll(
      listed.map(({ payload }) => payload),
      context.clock.nextTurn,
    );
    const own = await listOwnRepositories(context, visit.person.account);
    return showWebhook(
      visit,
      { found, own },
      listed.map(({ delivery }, index) => ({ ...delivery, about: abouts[index] ?? null })),
    );
  });
}

function showWebhook(
  visit: PersonVisit,
  { found, own }: { readonly found: FoundWebhook; readonly own: readonly OwnRepository[] },
  deliveries: readonly ListedDelivery[],
): SiteAnswer {
  const { webhook, url } = found;
  const wanted = wantedOf(visit);
  const { id, events, active, createdAt, repositories } = webhook;
  const about = repositories.scope === 'ALL_REPO' ? 'all repositories' : repositoriesText(repositories, own);
  const head = html`<h1 class="title">${shortUrl(url)}</h1><p>${events.join(', ')} · ${about} · ${
    active ? 'active' : html`<b>inactive</b>`
  } · created ${timeAgo(createdAt, visit.now)}</p>`;
  const ping = buttonForm(
    { action: pathOf(id, '/ping'), csrf: visit.csrf() },
    html`<button class="button">Send a ping</button>`,
  );
  const content = html`<div class="row">${ping}<a class="button" href="${pathOf(id, '/edit')}">Edit</a><a class="button" href="${pathOf(id, '/secret')}">Rotate secret…</a><a class="button grave end" href="${pathOf(id, '/delete')}">Delete…</a></div>${
    deliveries.length === 0
      ? noDeliveries()
      : html`${filterForm(id, deliveries, wanted)}${filtered(visit, id, deliveries, wanted)}`
  }`;
  const status = wanted.status === '' ? '' : STATUSES[wanted.status][0];
  const only = [status, wanted.event, wanted.repository].filter((text) => text !== '').join(', ');
  const title = `Webhook ${shortUrl(url)}${only === '' ? '' : `: ${only}`}`;
  return showPage(page(visit, { title, head }, content));
}

interface ListedDelivery extends WebhookDeliveryRow {
  readonly about: DeliveryAbout | null;
}

/** The deliveries that a list was asked for; empty for all. */
interface Wanted {
  readonly status: WebhookDeliveryRow['status'] | '';
  readonly event: WebhookEventKind | '';
  readonly repository: string;
}

function wantedOf({ url: { searchParams } }: PersonVisit): Wanted {
  const [status, event] = [searchParams.get('status'), searchParams.get('event')];
  return {
    status: STATUS_NAMES.find((name) => name === status) ?? '',
    event: WEBHOOK_EVENT_KINDS.find((kind) => kind === event) ?? '',
    repository: searchParams.get('repository') ?? '',
  };
}

/** Chooses among the newest deliveries, which are all that the page has. */
function filterForm(id: FoundWebhook['webhook']['id'], deliveries: readonly ListedDelivery[], wanted: Wanted): Html {
  const names = new Set(deliveries.flatMap(({ about }) => (about === null ? [] : [about.repository])));
  const choice = (name: keyof Wanted, label: string, options: readonly Option[]): Html =>
    selectField({ name, label, value: wanted[name], options: [{ value: '', label: 'All' }, ...options] });
  return html`<form class="box part filters" action="${pathOf(id)}" role="search" aria-label="Filter the deliveries">${choice(
    'status',
    'Status',
    STATUS_NAMES.map((value) => ({ value, label: STATUSES[value][0] })),
  )}${choice(
    'event',
    'Event',
    WEBHOOK_EVENT_KINDS.map((value) => ({ value, label: value })),
  )}${choice(
    'repository',
    'Repository',
    [...names].sort().map((value) => ({ value, label: value })),
  )}<button class="button">Filter</button></form>`;
}

function filtered(
  visit: PersonVisit,
  id: FoundWebhook['webhook']['id'],
  deliveries: readonly ListedDelivery[],
  { status, event, repository }: Wanted,
): Html {
  const found = deliveries.filter(
    (one) =>
      (status === '' || one.status === status) &&
      (event === '' || one.event === event) &&
      (repository === '' || one.about?.repository === repository),
  );
  if (found.length > 0) return deliveryTable(visit, id, found);
  return html`<div class="box empty"><h2>No delivery matches</h2><p>Of the newest ${deliveries.length}. <a href="${pathOf(id)}">Show all</a></p></div>`;
}

function noDeliveries(): Html {
  return html`<div class="box empty"><h2>No deliveries yet</h2><p>Push to a repository, or send a ping: what your server answers stands here.</p></div>`;
}

export function deliveryTable(
  visit: Pick<PersonVisit, 'now'>,
  webhook: FoundWebhook['webhook']['id'],
  deliveries: readonly ListedDelivery[],
): Html {
  let open = 0;
  const rows = deliveries.map((delivery) => {
    if (delivery.status === 'PENDING') open += 1;
    return deliveryRow(visit, webhook, delivery, delivery.status === 'PENDING' && open <= OPEN_MAX);
  });
  return html`<section class="box"><header><h2>Deliveries</h2><span class="end soft">the newest ${deliveries.length}</span></header><div class="scroll" tabindex="0" role="group" aria-label="Deliveries"><table><thead><tr><th>When</th><th>Event</th><th class="wide">Repository and ref</th><th>Status</th><th class="number">Code</th><th class="number wide">Attempts</th></tr></thead><tbody>
${rows}</tbody></table></div></section>`;
}

/** The repository and the ref in a row, in UTF-16 code units. Internal: the page of the delivery has both whole. */
const ABOUT_LENGTH_MAX = 80;

const STATUSES = {
  PENDING: ['pending', 'warn'],
  SUCCESS: ['delivered', 'good'],
  FAILED: ['failed', 'bad'],
} as const;
const STATUS_NAMES = ['PENDING', 'SUCCESS', 'FAILED'] as const;

export function statusMark(status: WebhookDeliveryRow['status']): Html {
  const [text, colour] = STATUSES[status];
  return html`<span class="mark ${colour}">${text}</span>`;
}

function deliveryRow(
  visit: Pick<PersonVisit, 'now'>,
  webhook: FoundWebhook['webhook']['id'],
  delivery: ListedDelivery,
  isOpen: boolean,
): Html {
  const { id, event, about, status, createdAt, nextAttemptAt, attemptLog } = delivery;
  const attempts = isOpen && attemptLine(delivery);
  return html`<tr><td>${timeAgo(createdAt, visit.now)}</td><td><a href="${pathOf(webhook, `/deliveries/${id}`)}">${event}</a></td><td class="wide wrap">${about !== null && cutText(`${about.repository} ${about.ref}`, ABOUT_LENGTH_MAX)}</td><td>${statusMark(status)}</td><td class="number">${
    attemptLog.at(-1)?.httpStatus ?? '—'
  }</td><td class="number wide">${attemptLog.length}</td></tr>
${
  attempts !== false &&
  html`<tr class="open"><td colspan="6"><h2>Attempts${
    nextAttemptAt !== null && html`: the next ${timeAgo(nextAttemptAt, visit.now)}`
  }</h2>${attempts}</td></tr>
`
}`;
}
