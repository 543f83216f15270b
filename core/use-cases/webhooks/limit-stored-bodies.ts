/**
 * Removes the bodies of an account's oldest ended deliveries while its payloads or its answers take more than their
 * bound.
 *
 * Invariants: a delivery that has not ended keeps its payload and its answer. One that gives way looks as after the
 * retention: it is listed without bodies and cannot be redelivered. Any number of processes may run this.
 */
import { accounts } from '../../account/evolve.ts';
import type { Plans } from '../../account/plans.ts';
import { MIB } from '../../kernel/byte-units.ts';
import { type AccountId, type EventId, plusMs, type WebhookDeliveryId } from '../../kernel/ids.ts';
import type { BodyKind, BodySums, DeliveryStore, KeptBody } from '../../ports/delivery-store.ts';
import type { EndedDeliveries } from '../../ports/due-deliveries.ts';
import type { Context } from '../../runtime/execute.ts';
import { PENDING_PAYLOAD_SPAN_MS } from './remove-old-deliveries.ts';

/**
 * What the bodies of an account's deliveries may take, those of answers and those of payloads, with 256 bytes more for
 * each; the oldest ended deliveries give way. The last figure is for the payloads of a plan without a quota of storage.
 */
export const WEBHOOK_ANSWERS_BYTES_MAX = 64 * MIB;
export const WEBHOOK_PAYLOADS_BYTES_MAX = 1_024 * MIB;
export const WEBHOOK_BODIES_UNLIMITED_BYTES_MAX = 10 * 1_024 * MIB;

export interface BoundBodiesContext extends Pick<Context, 'clock' | 'entities'> {
  readonly events: Pick<Context['events'], 'head'>;
  readonly deliveries: Pick<DeliveryStore, 'accountsBeyond' | 'oldest' | 'remove'>;
  readonly due: EndedDeliveries;
  readonly plans: Plans;
}

const LOWEST = { payloadBytes: WEBHOOK_PAYLOADS_BYTES_MAX, answerBytes: WEBHOOK_ANSWERS_BYTES_MAX };
/** Bodies that are read together. Internal: the rest is read in further pages. */
const PAGE_MAX = 500;

/**
 * Resolves with how many bodies it removed. After the signal is aborted it resolves when the current removal is done.
 * Rejects while the read model of deliveries is behind the log, since that says which of them have ended.
 */
export async function boundBodies(context: BoundBodiesContext, signal: AbortSignal): Promise<number> {
  let removed = 0;
  for (const sums of await context.deliveries.accountsBeyond(LOWEST)) {
    const { state } = await context.entities.get(accounts, sums.account);
    // Nothing is sent for an account that is closed, so nothing grows.
    if (state.status !== 'open') continue;
    const bounds = boundsOf(context.plans, state.plan);
    await context.due.deliveriesCaughtUp(await context.events.head());
    // The payload leaves with an answer, so these come last: what they free of payloads is known to nobody before.
    for (const kind of ['payload', 'answer'] as const) {
      const beyond =
        kind === 'answer' ? sums.answerBytes - bounds.answerBytes : sums.payloadBytes - bounds.payloadBytes;
      if (beyond > 0) removed += await makeRoom(context, sums.account, kind, beyond, signal);
    }
  }
  return removed;
}

function boundsOf(plans: Plans, plan: keyof Plans): Omit<BodySums, 'account'> {
  if (plans[plan].storage_bytes !== null) return LOWEST;
  return { payloadBytes: WEBHOOK_BODIES_UNLIMITED_BYTES_MAX, answerBytes: WEBHOOK_BODIES_UNLIMITED_BYTES_MAX };
}

/** Removes the oldest bodies of the kind until this many bytes are gone, page by page. */
async function makeRoom(
  context: BoundBodiesContext,
  account: AccountId,
  kind: BodyKind,
  bytes: number,
  signal: AbortSignal,
): Promise<number> {
  let left = bytes;
  let skipped = 0;
  let removed = 0;
  while (left > 0 && !signal.aborted) {
    const page = await context.deliveries.oldest(account, kind, skipped, PAGE_MAX);
    if (page.length === 0) break;
    const ended = await endedOf(context, account, page);
    const events = new Set<EventId>();
    const deliveries: WebhookDeliveryId[] = [];
    for (const body of page) {
      if (left <= 0) break;
      if (!ended.bodies.has(body)) {
        skipped += 1;
        continue;
      }
      left -= body.bytes;
      if (body.delivery !== null) deliveries.push(body.delivery);
      if (body.eventId !== null && ended.events.has(body.eventId)) events.add(body.eventId);
    }
    removed += await context.deliveries.remove([...events], deliveries);
  }
  return removed;
}

/** Returns the bodies whose deliveries have ended, and the notifications of which all deliveries have. */
async function endedOf(
  { clock, due }: BoundBodiesContext,
  account: AccountId,
  page: readonly KeptBody[],
): Promise<{ readonly bodies: ReadonlySet<KeptBody>; readonly events: ReadonlySet<EventId> }> {
  const events = page.flatMap(({ eventId }) => eventId ?? []);
  const deliveries = page.flatMap(({ delivery }) => delivery ?? []);
  const pending = await due.pendingAmong(account, events, deliveries);
  // The delivery of a younger payload may not be requested yet.
  const before = plusMs(clock.now(), -PENDING_PAYLOAD_SPAN_MS);
  const allEnded = new Set(events.filter((event) => !pending.events.has(event)));
  const bodies = page.filter(({ eventId, delivery, storedAt }) =>
    delivery === null
      ? eventId !== null && allEnded.has(eventId) && storedAt < before
      : !pending.deliveries.has(delivery),
  );
  return { bodies: new Set(bodies), events: allEnded };
}
