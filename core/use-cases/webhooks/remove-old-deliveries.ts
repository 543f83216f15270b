/**
 * Removes the bodies of webhook deliveries after retention.
 *
 * Must stay true: each removal takes a bounded number of bodies, however many are old. The next run removes what this
 * one leaves.
 */
import { plusMs } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DeliveryStore } from '../../ports/delivery-store.ts';

export interface RemoveOldDeliveriesContext {
  readonly clock: Pick<Clock, 'now'>;
  readonly deliveries: Pick<DeliveryStore, 'removeBefore'>;
  /** How long bodies are kept. */
  readonly retentionMs: number;
}

const REMOVED_AT_ONCE_MAX = 1_000;

/** Resolves when no old body is left. After the signal is aborted, it resolves when the current removal is done. */
export async function removeOldDeliveries(context: RemoveOldDeliveriesContext, signal: AbortSignal): Promise<void> {
  const { clock, deliveries, retentionMs } = context;
  const before = plusMs(clock.now(), -retentionMs);
  while (!signal.aborted && (await deliveries.removeBefore(before, REMOVED_AT_ONCE_MAX)) > 0);
}
