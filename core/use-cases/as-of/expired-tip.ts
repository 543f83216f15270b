/**
 * Names the compaction that dropped an earlier tip, for the answer to whoever asks for it.
 *
 * Invariants: a compaction keeps every tip that a ref left within the retention before it, unless it is a purge. So
 * the tip went with the first purge after it was left, or with the first compaction that dropped objects a whole
 * retention later. The retention may have been another one then: if it explains nothing, the last drop is named.
 */
import { readEvent } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type EventId, type ObjectId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { dropsObjects } from '../../repository/layers.ts';
import type { OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import { readBack } from '../../runtime/read-back.ts';
import { withUpdatesInPlace } from '../pushing/restore-wide-updates.ts';

export interface ExpiredTipContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly digest: Digest;
  readonly retentionMs: number;
}

interface Drop {
  readonly event: EventId;
  readonly at: Timestamp;
  readonly purges: boolean;
}

/** Reads the stream backwards, as far as to the event with which the last ref left the tip. Null: no drop is known. */
export async function expiredTip(
  context: ExpiredTipContext,
  { stream, revision }: Entity<OpenRepository>,
  tip: ObjectId,
): Promise<EventId | null> {
  const drops: Drop[] = [];
  for await (const recorded of readBack(context.events, stream, revision === 'none' ? -1 : revision)) {
    const event = readEvent<RepositoryEvent>(repositoryEventKinds, await withUpdatesInPlace(context, recorded));
    if (event.type === 'LayersCompacted' && dropsObjects(event)) {
      // The service itself waits for the retention.
      const purges = recorded.actor.kind !== 'system';
      drops.push({ event: recorded.id, at: recorded.occurredAt, purges });
    } else if (event.type === 'RefsUpdated' && event.data.updates.some(({ before }) => before === tip)) {
      return culprit(drops, plusMs(recorded.occurredAt, context.retentionMs));
    }
  }
  return drops[0]?.event ?? null;
}

/** `drops` are newest first. */
function culprit(drops: readonly Drop[], keptUntil: Timestamp): EventId | null {
  const dropped = drops.findLast(({ purges, at }) => purges || at >= keptUntil);
  return (dropped ?? drops[0])?.event ?? null;
}
