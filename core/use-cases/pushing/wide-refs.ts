/** Puts the updates of a wide push back into its `RefsUpdated`, for the code that folds or projects the event. */
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../kernel/envelope.ts';
import type { Digest } from '../../ports/digest.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { refUpdatesEventKinds, repositoryEventKinds, type StoredRefUpdate } from '../../repository/events.ts';
import { checkParts, partsStream } from '../../repository/wide-updates.ts';

/** Returns the event with its updates in place. Throws if the parts in the log are not those that the event names. */
export async function withUpdatesInPlace(
  context: { readonly events: Pick<EventStore, 'readStream'>; readonly digest: Digest },
  event: RecordedEvent,
): Promise<RecordedEvent> {
  if (event.type !== 'RefsUpdated' || categoryOf(event.stream) !== 'repository') return event;
  const read = readEvent(repositoryEventKinds, event);
  if (read.type !== 'RefsUpdated') return event;
  const { parts } = read.data;
  if (parts === null || read.data.updates.length > 0) return event;
  const updates: StoredRefUpdate[] = [];
  const stream = partsStream(parts);
  // One part at a time, because each may be almost as large as an append may be.
  for (let revision = 0; revision < parts.count; revision += 1) {
    const [part] = await context.events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
    if (part !== undefined) updates.push(...readEvent(refUpdatesEventKinds, part).data.updates);
  }
  checkParts(context.digest, parts, updates);
  return { ...event, data: { ...event.data, updates } };
}
