/**
 * The policy that removes operational streams from the log after the retention: deliveries that have ended, and days of
 * signing in.
 *
 * Must stay true: a stream is removed whole, at its last event. A pruned stream is never written again: what would write
 * it skips all that is older than the retention and `PENDING_DELIVERY_KEPT_MS` (follow-pushes.ts), or writes the stream
 * of today. A delivery that has not ended stays. Any number of nodes may run it.
 */
import { categoryOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LogPruning } from '../../ports/log-pruning.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import { signIns } from '../../sign-in/evolve.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';

export interface PruningContext extends PassingContext {
  readonly clock: Pick<Clock, 'now'>;
  readonly pruning: LogPruning;
  readonly retentionMs: number;
  readonly failpoint: Failpoint;
  /** Called for each stream that was removed. */
  readonly onPruned: () => void;
}

const POLICY = 'pruning';

/** By category, the types of the events that end a stream; null if any does. */
const ENDS: ReadonlyMap<string, readonly string[] | null> = new Map([
  [webhookDeliveries.category, ['WebhookDeliverySucceeded', 'WebhookDeliveryFailed']],
  [signIns.category, null],
]);

/** Returns the time before which a stream's last event must lie. */
export function prunedBefore({ clock, retentionMs }: Pick<PruningContext, 'clock' | 'retentionMs'>): Timestamp {
  return plusMs(clock.now(), -Math.max(retentionMs, PENDING_DELIVERY_KEPT_MS));
}

/**
 * Reads the log from where it stopped, up to the first event that is younger than the retention. Rejects if the log or
 * the marks cannot be reached. Resolves early when the signal is aborted.
 */
export async function pruneStreams(context: PruningContext, signal: { readonly aborted: boolean }): Promise<void> {
  await passEvents(context, POLICY, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if the event is too young, or no record event follows it yet. */
async function pass(context: PruningContext, recorded: RecordedEvent): Promise<boolean> {
  const before = prunedBefore(context);
  if (recorded.occurredAt >= before) return false;
  const { stream, revision } = recorded;
  const ends = recorded.isRecord ? undefined : ENDS.get(categoryOf(stream));
  if (ends === undefined || (ends !== null && !ends.includes(recorded.type))) return true;
  if ((await lastRevision(context, recorded)) !== revision) return true;
  if (await context.pruning.prune({ stream, lastRevision: revision }, before)) {
    await context.failpoint('stream-pruned');
    context.onPruned();
    return true;
  }
  // It grew meanwhile, and is looked at again at its new end; or it has to wait.
  return (await lastRevision(context, recorded)) !== revision;
}

async function lastRevision({ events }: PruningContext, { stream }: RecordedEvent): Promise<number | null> {
  const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
  return last?.revision ?? null;
}
