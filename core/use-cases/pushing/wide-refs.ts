/** Puts the updates of a wide push back into its `RefsUpdated`, for whoever folds or projects it. */
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../kernel/envelope.ts';
import type { Digest } from '../../ports/digest.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { refUpdatesEventKinds, repositoryEventKinds, type StoredRefUpdate } from '../../repository/events.ts';
import { partsStream, updatesDigestText } from '../../repository/wide-updates.ts';

/** The event itself unless it names parts; throws when the parts are not what it names. */
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
  // One at a time: each may be near the bound of an append.
  for (let revision = 0; revision < parts.count; revision += 1) {
    const [part] = await context.events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
    if (part !== undefined) updates.push(...readEvent(refUpdatesEventKinds, part).data.updates);
  }
  if (updates.length !== parts.updates || context.digest.sha256(updatesDigestText(updates)) !== parts.sha256) {
    throw new Error(`The parts on ${parts.stream} are not those that ${event.stream} revision ${event.revision} names`);
  }
  return { ...event, data: { ...event.data, updates } };
}
