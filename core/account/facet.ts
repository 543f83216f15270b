/**
 * A facet is a part of an account with its own commands, events and state. Its events are on the account's stream.
 *
 * Invariants: the state and the snapshot of a facet use property names that no other part of the account uses. The
 * account's state and its snapshot are one object each, which holds the members of all facets.
 */
import type { Codec } from '../kernel/codec.ts';
import type { DomainEvent, EventKinds } from '../kernel/decider.ts';
import type { Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';

export interface Facet<State, Event extends DomainEvent<string, JsonObject>> {
  readonly kinds: EventKinds<Event>;
  readonly initial: State;
  evolve(state: State, event: Event, at: Timestamp): State;
  /** The facet's members of an account's snapshot. If their meaning changes, raise the snapshot's version. */
  readonly snapshot: Codec<State, JsonObject>;
  /** Estimates how many bytes of memory the state takes. */
  sizeBytes(state: State): number;
}

/** Returns true if the event belongs to the facet. */
export function isEventOf<State, Event extends DomainEvent<string, JsonObject>>(
  facet: Facet<State, Event>,
  event: { readonly type: string },
): event is Event {
  return Object.hasOwn(facet.kinds, event.type);
}
