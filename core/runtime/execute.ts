/**
 * Load, decide, append: how every use case changes an aggregate, with its one commit point.
 *
 * Must stay true: a lost race is decided again from the state that won; the append that commits carries the
 * revision its decision was made at, and every guard the decision relied on; what memory alone knows neither
 * refuses nor calls a thing done.
 */
import type { Decider, Decision, DomainEvent, EventKind } from '../kernel/decider.ts';
import type { Cause, LogPosition, NewEvent } from '../kernel/envelope.ts';
import { type AccountId, type EventId, later, type Timestamp } from '../kernel/ids.ts';
import type { Refusal } from '../kernel/refusal.ts';
import type { Clock, Ids } from '../ports/clock.ts';
import type { EventStore, StreamGuard } from '../ports/event-store.ts';
import type { Entities } from './entities.ts';
import { type AnyEvent, advance, type Entity, nextRevision } from './entity.ts';

/** What every use case works with. */
export interface Context {
  readonly events: EventStore;
  readonly entities: Entities;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Puts domain events into envelopes, not earlier than the stream's last event. */
export function envelop<Type extends string>(
  context: Pick<Context, 'clock' | 'ids'>,
  decider: { readonly kinds: { readonly [T in Type]: EventKind } },
  events: readonly DomainEvent<Type, NewEvent['data']>[],
  about: { readonly account: AccountId | null; readonly cause: Cause; readonly lastAt: Timestamp | null },
): readonly NewEvent[] {
  const occurredAt = later(context.clock.now(), about.lastAt);
  const { actor, requestId, sourceAddressRef, causationId } = about.cause;
  return events.map(({ type, data }) => ({
    id: context.ids.next<EventId>(),
    type,
    version: decider.kinds[type].version,
    accountId: about.account,
    occurredAt,
    actor,
    requestId,
    sourceAddressRef,
    causationId,
    data,
  }));
}

/** A guard lost its race: what it stood for must be looked at anew. Asked before each try. */
export type Guarding = () => Promise<{ readonly guards: readonly StreamGuard[] } | { readonly refused: Refusal }>;

const NO_GUARDS: Guarding = async () => ({ guards: [] });

/** Lost races before a use case gives up; each means that somebody else's append succeeded meanwhile. */
const RACES_MAX = 100;

export interface Executed<State> {
  /** Right after this use case's own events, whatever others appended since. */
  readonly entity: Entity<State>;
}

/**
 * Decides on the aggregate's current state and appends; decides again whenever somebody else was first.
 * `guarding` is asked before each try for the guards to carry. A decision without events commits nothing.
 */
export async function execute<State, Event extends AnyEvent>(
  context: Context,
  decider: Decider<State, Event>,
  id: string,
  about: { readonly account: AccountId | null; readonly cause: Cause; readonly guarding?: Guarding },
  decide: (state: State) => Decision<Event>,
): Promise<Executed<State> | { readonly refused: Refusal }> {
  const guarding = about.guarding ?? NO_GUARDS;
  let entity = await context.entities.get(decider, id);
  for (let race = 0; race < RACES_MAX; race += 1) {
    const guarded = await guarding();
    if ('refused' in guarded) return guarded;
    const decision = decide(entity.state);
    if ('refused' in decision || decision.events.length === 0) {
      // It may rest on a state that is behind.
      const current = await context.entities.reload(decider, id);
      if (current.revision === entity.revision) return 'refused' in decision ? decision : { entity };
      entity = current;
      continue;
    }
    const events = envelop(context, decider, decision.events, { ...about, lastAt: entity.lastAt });
    const { stream, revision: expected } = entity;
    // The commit point of this use case.
    const result = await context.events.append({ stream, expected, events, guards: guarded.guards });
    if (result.outcome === 'appended') {
      context.entities.observe(stream, nextRevision(expected), result.position, events);
      return { entity: after(decider, entity, events, result.position) };
    }
    entity = await context.entities.reload(decider, id);
  }
  throw new Error(`${RACES_MAX} lost races on ${entity.stream}`);
}

function after<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  entity: Entity<State>,
  events: readonly NewEvent[],
  position: LogPosition,
): Entity<State> {
  let next = entity;
  for (const event of events) {
    next = advance(decider, next, { ...event, stream: next.stream, revision: nextRevision(next.revision), position });
  }
  return next;
}
