/** Given-when-then for aggregates: folds a history into the state on which a decision is made. */
import type { Decider, DomainEvent } from '../../core/kernel/decider.ts';
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';

/** The time of a history's first event. */
export const FIRST_AT = timestamp('2026-11-21T10:00:00.000Z');

/** Returns the state after a history whose events are one second apart. */
export function given<State, Event extends DomainEvent<string, JsonObject>>(
  decider: Decider<State, Event>,
  ...history: readonly Event[]
): State {
  return fold(
    decider,
    history.map((event, index) => ({ event, at: plusMs(FIRST_AT, index * 1_000) })),
  );
}

/** The same with an explicit time for each event. */
export function fold<State, Event extends DomainEvent<string, JsonObject>>(
  decider: Decider<State, Event>,
  history: readonly { readonly event: Event; readonly at: Timestamp }[],
): State {
  return history.reduce((state, { event, at }) => decider.evolve(state, event, at), decider.initial);
}
