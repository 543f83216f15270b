/**
 * The policy that removes operational streams from the log after the retention: deliveries that have ended, days of
 * signing in, of errors of buckets, and of reads.
 *
 * Invariants: a stream is removed whole, at its last event, and not before a `UsageRecorded` sums it. A pruned stream
 * is never written again: what would write it skips all that is older than the retention and `PENDING_DELIVERY_KEPT_MS`
 * (follow-pushes.ts), or writes the stream of today. A delivery that has not ended stays. Any number of nodes may run
 * it.
 */
import { bucketErrors } from '../../bucket-errors/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, LOG_START, type LogPosition, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { plusMs, type Timestamp, timestamp } from '../../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LogPruning } from '../../ports/log-pruning.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import { provenMark } from '../../runtime/read-mark.ts';
import { signIns } from '../../sign-in/evolve.ts';
import { USAGE_SUMMING } from '../../usage/daily-sums.ts';
import { usageEventKinds } from '../../usage/events.ts';
import { firstDayByMinutes } from '../../usage/ledger.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';

export interface PruningContext extends PassingContext {
  readonly clock: Pick<Clock, 'now'>;
  readonly pruning: LogPruning;
  readonly retentionMs: number;
  readonly failpoint: Failpoint;
  /** Called for each stream that was removed. */
  readonly onPruned: () => void;
}

interface Kind {
  /** The policy's mark. Reads wait for the end of a day, so they have one of their own. */
  readonly policy: string;
  /** By category, the types of the events that end a stream; null if any does. */
  readonly ends: ReadonlyMap<string, readonly string[] | null>;
  /** Returns the time before which a stream's last event must lie. */
  readonly before: (context: Pick<PruningContext, 'clock' | 'retentionMs'>) => Timestamp;
  readonly isSummed: (context: PruningContext, recorded: RecordedEvent) => Promise<boolean>;
}

const KINDS: readonly Kind[] = [
  {
    policy: 'operational-pruning',
    ends: new Map([
      [webhookDeliveries.category, ['WebhookDeliverySucceeded', 'WebhookDeliveryFailed']],
      [signIns.category, null],
      [bucketErrors.category, null],
    ]),
    before: prunedBefore,
    isSummed: async () => true,
  },
  {
    policy: 'transfer-pruning',
    ends: new Map([['transfer', null]]),
    before: minutesPrunedBefore,
    isSummed: isInDailySums,
  },
];

/** Returns the time before which the last event of a stream must lie; of reads see `minutesPrunedBefore`. */
export function prunedBefore({ clock, retentionMs }: Pick<PruningContext, 'clock' | 'retentionMs'>): Timestamp {
  return plusMs(clock.now(), -Math.max(retentionMs, PENDING_DELIVERY_KEPT_MS));
}

/** Reads go by whole days, from which on the ledger shows their sums. */
export function minutesPrunedBefore({ clock, retentionMs }: Pick<PruningContext, 'clock' | 'retentionMs'>): Timestamp {
  return timestamp(`${firstDayByMinutes(clock.now(), retentionMs)}T00:00:00.000Z`);
}

/**
 * Reads the log from where it stopped, up to the first event that is younger than the retention, or that is not summed
 * yet. Rejects if the log or the marks cannot be reached. Resolves early when the signal is aborted.
 */
export async function pruneStreams(context: PruningContext, signal: { readonly aborted: boolean }): Promise<void> {
  const mark = await context.marks.read(USAGE_SUMMING);
  const summed = (mark === null ? null : await provenMark(context.events, mark))?.position ?? LOG_START;
  for (const kind of KINDS) {
    await passEvents(context, kind.policy, (recorded) => pass(context, recorded, kind, summed), signal);
  }
}

/** Resolves false if the event is too young or not summed, or no record event follows it yet. */
async function pass(
  context: PruningContext,
  recorded: RecordedEvent,
  kind: Kind,
  summed: LogPosition,
): Promise<boolean> {
  const before = kind.before(context);
  const { stream, revision, position } = recorded;
  if (recorded.occurredAt >= before || position > summed) return false;
  const ends = recorded.isRecord ? undefined : kind.ends.get(categoryOf(stream));
  if (ends === undefined || (ends !== null && !ends.includes(recorded.type))) return true;
  if ((await lastRevision(context, recorded)) !== revision) return true;
  // What no daily sum holds although they are made stays.
  if (!(await kind.isSummed(context, recorded))) return true;
  if (await context.pruning.prune({ stream, lastRevision: revision }, before)) {
    await context.failpoint('stream-pruned');
    context.onPruned();
    return true;
  }
  // It has grown since, and is looked at again at its new end; or it has to wait.
  return (await lastRevision(context, recorded)) !== revision;
}

async function lastRevision({ events }: PruningContext, { stream }: RecordedEvent): Promise<number | null> {
  const [last] = await events.readStream(stream, { direction: 'backwards', limit: 1 });
  return last?.revision ?? null;
}

/** Whether the record has a later `UsageRecorded` of the account, of the event's day or a later one. */
async function isInDailySums({ events }: PruningContext, recorded: RecordedEvent): Promise<boolean> {
  const { accountId, position, occurredAt } = recorded;
  if (accountId === null) return false;
  const [last] = await events.readStream(streamName('usage', accountId), { direction: 'backwards', limit: 1 });
  if (last === undefined || last.position < position) return false;
  return readEvent(usageEventKinds, last).data.day >= occurredAt.slice(0, 10);
}
