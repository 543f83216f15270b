/**
 * The policy that requests the webhook deliveries of a push, from one `RefsUpdated`, as far as the hour and the account
 * have room for them; the others wait in one row for each webhook (core/ports/waiting-deliveries.ts).
 *
 * Invariants: the webhooks and the names in their payloads are derived from the log up to the event, and every id
 * from the event's id. So the policy is idempotent. Deliveries are requested in the order of the push's refs, and of
 * the events of each ref.
 */
import { accounts } from '../../account/evolve.ts';
import type { Webhook } from '../../account/webhooks/state.ts';
import { utf8Length } from '../../git/utf8.ts';
import { MIB } from '../../kernel/byte-units.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type EventId, type ObjectId, objectId, type WebhookId } from '../../kernel/ids.ts';
import { WEBHOOK_PAYLOAD_BYTES_MAX } from '../../kernel/limits.ts';
import type { Log } from '../../ports/log.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { WaitingRow } from '../../ports/waiting-deliveries.ts';
import type { StoredRefUpdate } from '../../repository/events.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';
import {
  deliveryIdOf,
  eventIdOf,
  notificationsOf,
  type RefNotification,
} from '../../webhook-delivery/notifications.ts';
import { type RefEvent, refEventPayload } from '../../webhook-delivery/payload.ts';
import { payloadTag } from '../../webhook-delivery/payload-texts.ts';
import { type BudgetContext, takeNow } from './delivery-budget.ts';
import { commitTip, type NewCommits, newCommitsOf } from './new-commits-of-push.ts';
import type { PendingRoom } from './pending-delivery-limit.ts';
import { listensFor, rowsLeft } from './postponed-deliveries.ts';
import {
  openInTurn,
  type PushFacts,
  type PushFactsContext,
  pushFacts,
  refsUpdated,
  type Turn,
} from './push-context.ts';
import { type DeliveryContext, requestDelivery, storePayloads } from './webhook-deliveries.ts';

/** The size of all payloads of one push together: each is cut to an equal share. */
export const WEBHOOK_PUSH_PAYLOADS_BYTES_MAX = 128 * MIB;

export interface NotifyContext extends DeliveryContext, BudgetContext, PushFactsContext {
  readonly log: Log;
}

/** The number of notifications that are processed in one turn. Internal: the rest follows in further turns. */
const SLICE_MAX = 40;

export interface NotifyOptions {
  /** The payloads lack the facts of the repository's objects, which cannot be read. */
  readonly withoutObjects: boolean;
  /** Where each webhook that has a row goes on; null for a push that has none. */
  readonly rows: ReadonlyMap<WebhookId, number> | null;
  /** Makes rows alone, and no delivery: earlier pushes of the account wait. */
  readonly rowsOnly: boolean;
  /** How many refs have their deliveries, by a row of an older version. */
  readonly refsDone: number;
  readonly room: Pick<PendingRoom, 'hasRoom' | 'requested'>;
}

/**
 * Requests the deliveries of a `RefsUpdated` whose updates are in place, until the hour or the account has no room.
 * Returns the rows of those that are left; none when the push is done.
 */
export async function notifyOfPush(
  context: NotifyContext,
  event: RecordedEvent,
  turn: Turn,
  options: NotifyOptions,
): Promise<readonly WaitingRow[]> {
  const push = await turn(() => pushFacts(context, event));
  if (push === null) return [];
  const { rows } = options;
  const { updates } = refsUpdated(event);
  const notifications = notificationsOf(updates);
  const start = notificationsOf(updates, options.refsDone).length;
  const passed = new Map<WebhookId, number>();
  for (const { id } of push.webhooks) {
    passed.set(id, rows === null ? start : (rows.get(id) ?? notifications.length));
  }
  if (!options.rowsOnly) {
    const first = Math.min(notifications.length, ...passed.values());
    const left = notifications.slice(first);
    if (left.length > 0) await requestAll(context, push, { updates, left, first, passed }, turn, options);
  }
  const { state } = await context.entities.get(accounts, push.accountId);
  // Nobody can see the deliveries of a webhook that was deleted, and nothing is sent.
  const there = push.webhooks.filter(({ id }) => state.status !== 'open' || state.webhooks.has(id));
  return rowsLeft(push, there, notifications, passed);
}

/** The notifications of a push that are left. */
interface Left {
  /** All updates of the push. */
  readonly updates: readonly StoredRefUpdate[];
  readonly left: readonly RefNotification[];
  /** How many notifications are before them. */
  readonly first: number;
  /** How many each webhook is past. */
  readonly passed: Map<WebhookId, number>;
}

async function requestAll(
  context: NotifyContext,
  push: PushFacts,
  { updates, left, first, passed }: Left,
  turn: Turn,
  { withoutObjects, rows, room }: NotifyOptions,
): Promise<void> {
  const waited = rows !== null;
  const bytesMax = payloadShare(notificationsOf(updates).length);
  const reader = withoutObjects ? null : await openInTurn(context, push, waited, turn);
  try {
    const refs = [...new Set(left.map(({ update }) => update))];
    const commits = reader === null ? null : await turn(() => newCommitsOf(reader, push.entity.state, refs, updates));
    const sources = { reader, commits, bytesMax };
    for (let at = 0; at < left.length; at += SLICE_MAX) {
      const slice = { notifications: left.slice(at, at + SLICE_MAX), first: first + at, passed, waited };
      if (!(await turn(() => requestDeliveries(context, push, slice, sources, room)))) return;
    }
  } finally {
    reader?.close();
  }
}

/** Returns how many bytes each payload may have. It depends on the push alone, not on the webhooks that listen. */
export function payloadShare(notifications: number): number {
  return Math.min(WEBHOOK_PAYLOAD_BYTES_MAX, Math.floor(WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / notifications));
}

interface PayloadSources {
  /** Null if the objects cannot be read. */
  readonly reader: ObjectReader | null;
  /** Null if the objects cannot be read. */
  readonly commits: NewCommits | null;
  /** The bound of one payload. */
  readonly bytesMax: number;
}

interface Slice {
  readonly notifications: readonly RefNotification[];
  /** How many notifications of the push are before them. */
  readonly first: number;
  readonly passed: Map<WebhookId, number>;
  /** Whether the deliveries waited for this hour. */
  readonly waited: boolean;
}

/** A notification with the webhooks whose deliveries begin now. */
interface Beginning {
  readonly event: RefEvent;
  readonly eventId: EventId;
  readonly body: string;
  readonly webhooks: readonly Webhook[];
}

/**
 * Takes room for the deliveries of some notifications, stores their payloads, then requests the deliveries, event by
 * event. Moves each webhook on, and returns whether all had room.
 */
async function requestDeliveries(
  context: NotifyContext,
  push: PushFacts,
  { notifications, first, passed, waited }: Slice,
  sources: PayloadSources,
  room: NotifyOptions['room'],
): Promise<boolean> {
  const beginning: Beginning[] = [];
  const payloads = payloadsOf(context, push, sources);
  let count = 0;
  let full = false;
  for (const [at, notification] of notifications.entries()) {
    const next = push.webhooks.filter(({ id }) => (passed.get(id) ?? 0) <= first + at);
    const listening = next.filter((webhook) => listensFor(webhook, notification.kind));
    const unknown = await notRequested(context, push, notification, listening);
    const made = unknown.length === 0 ? null : await payloads(notification);
    let begun = 0;
    if (made !== null && (await room.hasRoom(push.accountId, count + unknown.length))) {
      const wanted = { count: unknown.length, payloadBytes: utf8Length(made.body) };
      begun = await takeNow(context, push.accountId, wanted, waited);
      beginning.push({ ...made, webhooks: unknown.slice(0, begun) });
      count += begun;
    }
    const held = new Set(unknown.slice(begun));
    for (const webhook of next) if (!held.has(webhook)) passed.set(webhook.id, first + at + 1);
    if (held.size > 0) {
      full = true;
      break;
    }
  }
  await request(
    context,
    push,
    beginning.filter(({ webhooks }) => webhooks.length > 0),
    room,
  );
  return !full;
}

async function request(
  context: NotifyContext,
  { accountId: account, cause, repository }: PushFacts,
  beginning: readonly Beginning[],
  room: NotifyOptions['room'],
): Promise<void> {
  if (beginning.length === 0) return;
  const digests = await storePayloads(context, account, beginning);
  await context.failpoint('webhook-payload-stored');
  for (const [index, { eventId, event, webhooks }] of beginning.entries()) {
    const wanted = { eventId, event: event.kind, repositoryId: repository.id, payloadSha256: digests[index] ?? '' };
    const requested = webhooks.map(async ({ id }) => {
      const made = await requestDelivery(context, { account, cause }, { ...wanted, webhookId: id, notBefore: null });
      if (!('refused' in made)) room.requested(account, 1, made.position);
    });
    // All requests settle before an error is thrown, so that none still runs after the slice has failed.
    for (const settled of await Promise.allSettled(requested)) {
      if (settled.status === 'rejected') throw settled.reason;
    }
    await context.failpoint('webhook-delivery-requested');
  }
}

/**
 * Returns a function that makes payloads. What it reads of a ref serves all events of the ref, which follow each other.
 */
function payloadsOf(
  { ids }: Pick<NotifyContext, 'ids'>,
  { event, repository }: PushFacts,
  { reader, commits, bytesMax }: PayloadSources,
): (notification: RefNotification) => Promise<Omit<Beginning, 'webhooks'>> {
  let last: { readonly update: StoredRefUpdate; readonly facts: RefFacts } | null = null;
  return async ({ update, kind }) => {
    if (last?.update !== update) {
      const facts = {
        newCommits: (await commits?.of(update)) ?? [],
        headCommit: await headCommitOf(reader, update),
        annotation: await annotationOf(reader, update),
      };
      last = { update, facts };
    }
    const eventId = eventIdOf(ids, event.id, kind, update.ref);
    const refEvent: RefEvent = { eventId, kind, update, repository, ...last.facts };
    return { event: refEvent, eventId, body: refEventPayload(refEvent, bytesMax) };
  };
}

type RefFacts = Pick<RefEvent, 'newCommits' | 'headCommit' | 'annotation'>;

/** Returns the webhooks that were not told before: what was requested once takes no budget again. */
async function notRequested(
  { entities, ids }: NotifyContext,
  { event }: PushFacts,
  { update, kind }: RefNotification,
  listening: readonly Webhook[],
): Promise<readonly Webhook[]> {
  const eventId = eventIdOf(ids, event.id, kind, update.ref);
  const known = await Promise.all(
    listening.map(async ({ id }) => entities.get(webhookDeliveries, deliveryIdOf(ids, eventId, id, kind))),
  );
  return listening.filter((_, at) => known[at]?.state.status === 'absent');
}

/** Returns the commit that a ref peels to. Only the objects show whether a tag peels to a commit. */
async function headCommitOf(reader: ObjectReader | null, update: StoredRefUpdate): Promise<ObjectId | null> {
  const tip = commitTip(update);
  if (tip === null || update.type === 'commit' || reader === null) return tip;
  const [info] = await reader.lookup([tip]);
  return info?.type === 'commit' ? tip : null;
}

async function annotationOf(reader: ObjectReader | null, update: StoredRefUpdate): Promise<RefEvent['annotation']> {
  if (update.type !== 'tag' || reader === null) return null;
  const tag = await reader.tag(objectId(update.after));
  return tag === null ? null : payloadTag(tag);
}
