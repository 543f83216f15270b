/**
 * An aggregate at a revision of its stream.
 *
 * Must stay true: a state is exactly the fold of the stream's events up to its revision, never between two.
 */
import { type Decider, type DomainEvent, readEvent } from '../kernel/decider.ts';
import { LOG_START, type LogPosition, type RecordedEvent, type StreamName } from '../kernel/envelope.ts';
import type { EventId, Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import type { ExpectedRevision } from '../ports/event-store.ts';

export type AnyEvent = DomainEvent<string, JsonObject>;

export interface Entity<State> {
  readonly stream: StreamName;
  readonly state: State;
  readonly revision: ExpectedRevision;
  /** Where its last event stands in the log; `LOG_START` while it has none. */
  readonly position: LogPosition;
  /** When its last event happened: the next may not be earlier. */
  readonly lastAt: Timestamp | null;
  /** The last event folded: the same revision of another history ends with another. */
  readonly lastEventId: EventId | null;
}

/** The aggregate before its first event. */
export function unborn<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  stream: StreamName,
): Entity<State> {
  return { stream, state: decider.initial, revision: 'none', position: LOG_START, lastAt: null, lastEventId: null };
}

/** The aggregate after its next event; TypeError for any other event. */
export function advance<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  entity: Entity<State>,
  event: RecordedEvent,
): Entity<State> {
  if (event.stream !== entity.stream || event.revision !== nextRevision(entity.revision)) {
    throw new TypeError(
      `${event.stream} revision ${event.revision} does not follow ${entity.stream} ${entity.revision}`,
    );
  }
  return {
    stream: entity.stream,
    state: decider.evolve(entity.state, readEvent(decider.kinds, event), event.occurredAt),
    revision: event.revision,
    position: event.position,
    lastAt: event.occurredAt,
    lastEventId: event.id,
  };
}

export function nextRevision(revision: ExpectedRevision): number {
  return revision === 'none' ? 0 : revision + 1;
}
