/** `strata webhook …`. */
import type { Webhook, WebhookDelivery } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { usageFailure } from '../session/failure.ts';
import { type Column, fieldsText, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { timeCell } from '../terminal/values.ts';
import { parseEvents } from './fields.ts';
import { given as givenOnly, show } from './show.ts';

const COLUMNS: readonly Column<Webhook>[] = [
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'URL', text: ({ url }) => url },
  { title: 'EVENTS', text: ({ events }) => events.join(',') },
  {
    title: 'STATE',
    text: ({ active }) => (active ? 'active' : 'inactive'),
    colour: ({ active }) => (active ? 'green' : 'dim'),
  },
];

const DELIVERY_COLUMNS: readonly Column<WebhookDelivery>[] = [
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'EVENT', text: ({ event }) => event },
  {
    title: 'STATUS',
    text: ({ status }) => status,
    colour: ({ status }) => (status === 'SUCCESS' ? 'green' : status === 'FAILED' ? 'red' : 'yellow'),
  },
  { title: 'HTTP', text: ({ http_status }) => (http_status === null ? '-' : String(http_status)) },
  { title: 'TRIES', text: ({ attempts }) => String(attempts), right: true },
  { title: 'MADE', text: ({ created_at }, exact) => timeCell(created_at, exact) },
  { title: 'ERROR', text: ({ error }) => error ?? '' },
];

function webhookText({ terminal }: Context, webhook: Webhook & { readonly secret?: string }): string {
  const exact = !terminal.isInteractive;
  const fields = fieldsText(terminal, [
    ['id', webhook.id],
    ['url', webhook.url],
    ['events', webhook.events.join(',')],
    ['state', webhook.active ? 'active' : 'inactive'],
    ['scope', webhook.scope],
    ...(webhook.repository_ids.length === 0 ? [] : [['repositories', webhook.repository_ids.join(',')] as const]),
    ['created', timeCell(webhook.created_at, exact)],
    ['updated', timeCell(webhook.updated_at, exact)],
    ...(webhook.secret === undefined ? [] : [['secret', webhook.secret] as const]),
  ]);
  if (webhook.secret !== undefined && terminal.isInteractive) return `${fields}\nThe secret is shown here once.\n`;
  return fields;
}

export async function list(context: Context): Promise<void> {
  await show(context, 'listWebhooks', {}, ({ webhooks }) => tableText(context.terminal, COLUMNS, webhooks));
}

export async function get(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'getWebhook', { path }, (found) => webhookText(context, found));
}

export async function create(context: Context, given: Given): Promise<void> {
  const events = parseEvents(given.list('events')) ?? ['push'];
  const body = { url: given.argument('url'), events, active: !given.flag('inactive') };
  await show(context, 'createWebhook', { body }, (made) => webhookText(context, made));
}

export async function edit(context: Context, given: Given): Promise<void> {
  const [active, inactive] = [given.flag('active'), given.flag('inactive')];
  if (active && inactive) throw usageFailure('--active and --inactive exclude each other');
  const body = givenOnly({
    url: given.text('url'),
    events: parseEvents(given.list('events')),
    active: active || inactive ? active : undefined,
  });
  if (Object.keys(body).length === 0)
    throw usageFailure('Nothing to change', 'Give --url, --events, --active or --inactive');
  const path = { id: given.argument('id') };
  await show(context, 'updateWebhook', { path, body }, (found) => webhookText(context, found));
}

export async function rotateSecret(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'rotateWebhookSecret', { path }, (found) => webhookText(context, found));
}

export async function ping(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'pingWebhook', { path }, ({ delivery_id }) => `Sent a ping: delivery ${showable(delivery_id)}\n`);
}

export async function deliveries(context: Context, given: Given): Promise<void> {
  const { terminal } = context;
  const query = givenOnly({
    limit: given.number('limit'),
    include_payload: given.flag('include-payload') || undefined,
  });
  const path = { id: given.argument('id') };
  await show(context, 'listWebhookDeliveries', { path, query }, (found) => {
    if (!given.flag('include-payload')) return tableText(terminal, DELIVERY_COLUMNS, found.deliveries);
    return found.deliveries.map((delivery) => deliveryText(context, delivery)).join('');
  });
}

/** A delivery with its payload, which has no place in a table. */
function deliveryText({ terminal }: Context, delivery: WebhookDelivery): string {
  const row = tableText(terminal, DELIVERY_COLUMNS, [delivery]);
  const payload = delivery.payload == null ? '(not kept)' : JSON.stringify(delivery.payload, null, 2);
  return `${row}${payload.split('\n').map(showable).join('\n')}\n`;
}

export async function redeliver(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id'), delivery_id: given.argument('delivery') };
  await show(context, 'redeliverWebhookDelivery', { path }, () => `Delivery ${path.delivery_id} is pending again\n`);
}

export async function remove(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'deleteWebhook', { path }, () => `Deleted ${path.id}\n`);
}
