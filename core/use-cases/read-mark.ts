/** Where a policy stopped reading the log, and whether the log it reads is still the one it read then. */
import type { LogPosition, RecordedEvent } from '../kernel/envelope.ts';
import type { EventStore } from '../ports/event-store.ts';
import type { ReadMark } from '../ports/vault-references.ts';

export function markOf({ position, stream, revision, id }: RecordedEvent): ReadMark {
  return { position, stream, revision, eventId: id };
}

/**
 * The mark's position, or null when the log does not hold its event there: a restored log may have lost the event, and
 * a log that was moved gives it another position.
 */
export async function standingPosition(
  events: Pick<EventStore, 'readStream'>,
  { stream, revision, eventId, position }: ReadMark,
): Promise<LogPosition | null> {
  const [event] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  return event?.id === eventId && event.position === position ? position : null;
}
