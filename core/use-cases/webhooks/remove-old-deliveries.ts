/**
 * Removes the bodies of webhook deliveries after retention.
 *
 * Invariants: each removal takes a bounded number of bodies, however many are old. The next run removes what this one
 * leaves. A delivery that has not ended finds its payload, unless it is older than the retention and a day: one that
 * waits without end must not keep everybody's bodies.
 */
import { plusMs, type Timestamp } from '../../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DeliveryStore } from '../../ports/delivery-store.ts';
import type { DueDeliveries } from '../../ports/due-deliveries.ts';

export interface RemoveOldDeliveriesContext {
  readonly clock: Pick<Clock, 'now'>;
  readonly deliveries: Pick<DeliveryStore, 'removeBefore'>;
  readonly due: Pick<DueDeliveries, 'backlog'>;
  /** How long bodies are kept. */
  readonly retentionMs: number;
}

/** Deliveries that one statement removes. Internal: the rest is removed by further statements. */
const REMOVED_AT_ONCE_MAX = 1_000;
/** From a payload's put to the event of its delivery, on a busy node. */
export const PENDING_PAYLOAD_SPAN_MS = 60_000;

/** Resolves when no old body is left. After the signal is aborted, it resolves when the current removal is done. */
export async function removeOldDeliveries(context: RemoveOldDeliveriesContext, signal: AbortSignal): Promise<void> {
  const { deliveries } = context;
  const before = await keptSince(context);
  while (!signal.aborted && (await deliveries.removeBefore(before, REMOVED_AT_ONCE_MAX)) > 0);
}

/**
 * A payload is stored before its delivery is requested, so one that is under way at this moment is inside the
 * retention.
 */
async function keptSince({ clock, due, retentionMs }: RemoveOldDeliveriesContext): Promise<Timestamp> {
  const now = clock.now();
  const since = plusMs(now, -retentionMs);
  const { oldestAt } = await due.backlog();
  if (oldestAt === null || oldestAt >= since) return since;
  const earliest = plusMs(since, -PENDING_DELIVERY_KEPT_MS);
  // The payload of the oldest was stored a moment before it was created.
  const needed = plusMs(oldestAt, -PENDING_PAYLOAD_SPAN_MS);
  return needed > earliest ? needed : earliest;
}
