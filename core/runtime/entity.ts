/**
 * An aggregate at a revision of its stream.
 *
 * Invariants: the state is the fold of exactly the stream's events up to the revision.
 */
import { type Decider, type DomainEvent, readEvent } from '../kernel/decider.ts';
import { LOG_START, type LogPosition, type StreamEvent, type StreamName } from '../kernel/envelope.ts';
import type { EventId, Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import type { ExpectedRevision } from '../ports/event-store.ts';

export type AnyEvent = DomainEvent<string, JsonObject>;

export interface Entity<State> {
  readonly stream: StreamName;
  readonly state: State;
  readonly revision: ExpectedRevision;
  /** The log position of its last event; `LOG_START` if it has none. */
  readonly position: LogPosition;
  /** The time of its last event: the next event may not be earlier. */
  readonly lastAt: Timestamp | null;
  /** The id of the last event folded. It tells apart equal revisions of different histories, e.g. after a restore. */
  readonly lastEventId: EventId | null;
}

/** Returns the aggregate before its first event. */
export function emptyEntity<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  stream: StreamName,
): Entity<State> {
  return { stream, state: decider.initial, revision: 'none', position: LOG_START, lastAt: null, lastEventId: null };
}

/** Returns the aggregate after its next event. Throws TypeError for any other event. */
export function advance<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  entity: Entity<State>,
  event: StreamEvent,
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
