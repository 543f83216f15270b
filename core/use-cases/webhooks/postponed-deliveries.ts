/**
 * The rows of deliveries that are still to be made, and the deliveries that a row stands for.
 *
 * Invariants: a row's deliveries are those of the push's notifications, in their order, that its webhook listened
 * for and that it is not past. Their ids are the ones with which they will be made.
 */
import type { Webhook } from '../../account/webhooks/state.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { categoryOf, entityIdOf, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import type { AccountId, EventId, Timestamp, WebhookDeliveryId, WebhookId } from '../../kernel/ids.ts';
import type { PlacedRow, WaitingDeliveries, WaitingRow } from '../../ports/waiting-deliveries.ts';
import type { WebhookDeliveryRow } from '../../ports/webhook-delivery-lists.ts';
import { repositoryEventKinds } from '../../repository/events.ts';
import type { Context } from '../../runtime/execute.ts';
import {
  deliveryIdOf,
  eventIdOf,
  notificationsOf,
  type RefEventKind,
  type RefNotification,
} from '../../webhook-delivery/notifications.ts';
import { withUpdatesInPlace } from '../pushing/restore-wide-updates.ts';
import { type BudgetContext, paceOf, slotTime } from './delivery-budget.ts';
import type { PushFacts } from './push-context.ts';

export interface WaitingContext extends Pick<Context, 'events' | 'ids'>, BudgetContext {
  readonly digest: Digest;
  readonly waiting: WaitingDeliveries;
}

export function listensFor({ events }: Pick<Webhook, 'events'>, kind: RefEventKind): boolean {
  return events.includes(kind);
}

/** Returns a row for each webhook that is not past all notifications it listens for. */
export function rowsLeft(
  { event, accountId: account }: PushFacts,
  webhooks: readonly Webhook[],
  notifications: readonly RefNotification[],
  passed: ReadonlyMap<WebhookId, number>,
): readonly WaitingRow[] {
  const { id: push, stream, revision, position, occurredAt: createdAt } = event;
  return webhooks.flatMap((webhook) => {
    const kinds = REF_KINDS.filter((kind) => listensFor(webhook, kind));
    const past = passed.get(webhook.id) ?? 0;
    const waiting = notifications.slice(past).filter(({ kind }) => kinds.includes(kind)).length;
    if (waiting === 0) return [];
    return { push, stream, revision, position, account, webhook: webhook.id, createdAt, kinds, passed: past, waiting };
  });
}

const REF_KINDS: readonly RefEventKind[] = ['push', 'create', 'delete'];

/** Returns the event of a row's push, with its updates in place; null if the log is not that of the row. */
async function pushOfRow(
  context: Pick<WaitingContext, 'events' | 'digest'>,
  { push, stream, revision }: Pick<WaitingRow, 'push' | 'stream' | 'revision'>,
): Promise<RecordedEvent | null> {
  const name = streamName(categoryOf(stream), entityIdOf(stream));
  const [event] = await context.events.readStream(name, { direction: 'forwards', from: revision, limit: 1 });
  return event?.id === push ? withUpdatesInPlace(context, event) : null;
}

/** A delivery that is still to be made. */
interface Waiting {
  readonly id: WebhookDeliveryId;
  readonly eventId: EventId;
  readonly event: RefEventKind;
}

/** Returns what the deliveries of a row tell of, in their order. `event` has its updates in place. */
function notificationsOfRow(event: RecordedEvent, { kinds, passed }: OfPush): readonly RefNotification[] {
  const push = readEvent(repositoryEventKinds, event);
  if (push.type !== 'RefsUpdated') throw new TypeError(`${event.type} is not a push`);
  return notificationsOf(push.data.updates)
    .slice(passed)
    .filter(({ kind }) => kinds.includes(kind));
}

type OfPush = Pick<WaitingRow, 'webhook' | 'kinds' | 'passed'>;

/** Ids take most of the time that a row takes: the caller makes those that it needs. */
function deliveryOf(
  { ids }: Pick<Context, 'ids'>,
  event: RecordedEvent,
  { webhook }: OfPush,
  { update, kind }: RefNotification,
): Waiting {
  const eventId = eventIdOf(ids, event.id, kind, update.ref);
  return { id: deliveryIdOf(ids, eventId, webhook, kind), eventId, event: kind };
}

/** Returns the deliveries of a row in their order. `event` has its updates in place. */
export function deliveriesOfRow(context: Pick<Context, 'ids'>, event: RecordedEvent, row: OfPush): readonly Waiting[] {
  return notificationsOfRow(event, row).map((notification) => deliveryOf(context, event, row, notification));
}

/** Lists the newest deliveries of a webhook that are still to be made, in the form of those that were. */
export async function listWaiting(
  context: WaitingContext,
  account: AccountId,
  webhook: WebhookId,
  limit: number,
): Promise<readonly WebhookDeliveryRow[]> {
  const rows = await context.waiting.newest(account, webhook, limit);
  if (rows.length === 0) return [];
  const timeOf = await times(context, account);
  const listed: WebhookDeliveryRow[] = [];
  for (const row of rows) {
    if (listed.length >= limit) break;
    const event = await pushOfRow(context, row);
    if (event === null) continue;
    const notifications = notificationsOfRow(event, row);
    const last = Math.max(0, notifications.length - (limit - listed.length));
    for (const [index, notification] of [...notifications.entries()].slice(last).toReversed()) {
      listed.push(shownAs(row, deliveryOf(context, event, row, notification), timeOf(row, index)));
    }
  }
  return listed;
}

/** Finds a delivery of a webhook that is still to be made. */
export async function findWaiting(
  context: WaitingContext,
  account: AccountId,
  webhook: WebhookId,
  id: WebhookDeliveryId,
): Promise<WebhookDeliveryRow | null> {
  for (const row of await context.waiting.mayHold(account, webhook, id)) {
    const event = await pushOfRow(context, row);
    const deliveries = event === null ? [] : deliveriesOfRow(context, event, row);
    const index = deliveries.findIndex((delivery) => delivery.id === id);
    const found = deliveries[index];
    if (found !== undefined) return shownAs(row, found, (await times(context, account))(row, index));
  }
  return null;
}

/** When a delivery of a row is to be made, as far as it can be told now; null: as soon as the account has room. */
type TimeOf = (row: PlacedRow, index: number) => Timestamp | null;

async function times(context: BudgetContext, account: AccountId): Promise<TimeOf> {
  const pace = await paceOf(context, account);
  if (pace === null || pace === 'closed') return () => null;
  return ({ ahead, webhooks }, index) => slotTime(pace, ahead + index * webhooks);
}

function shownAs({ createdAt }: WaitingRow, waiting: Waiting, at: Timestamp | null): WebhookDeliveryRow {
  const times = { createdAt, nextAttemptAt: at ?? createdAt, deferredUntil: at };
  return {
    id: waiting.id,
    eventId: waiting.eventId,
    event: waiting.event,
    status: 'PENDING',
    ...times,
    attemptLog: [],
  };
}
