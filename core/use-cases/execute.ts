/**
 * Load, decide, append: how every use case changes an aggregate, with its one commit point.
 *
 * Must stay true: a lost race is decided again from the state that won; the append that commits carries the
 * revision its decision was made at, and every guard the decision relied on.
 */
import type { Decider, Decision, DomainEvent } from '../kernel/decider.ts';
import type { Cause, NewEvent } from '../kernel/envelope.ts';
import { type AccountId, type EventId, later, type Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import type { Refusal } from '../kernel/refusal.ts';
import type { Clock, Ids } from '../ports/clock.ts';
import type { AppendResult, EventStore, StreamGuard } from '../ports/event-store.ts';
import type { Entities, Entity } from './entities.ts';

/** What every use case works with. */
export interface Context {
  readonly events: EventStore;
  readonly entities: Entities;
  readonly clock: Clock;
  readonly ids: Ids;
}

type AnyEvent = DomainEvent<string, JsonObject>;

/** Puts domain events into envelopes, not earlier than the stream's last event. */
export function envelop<Event extends AnyEvent>(
  context: Pick<Context, 'clock' | 'ids'>,
  decider: Pick<Decider<never, Event>, 'kinds'>,
  events: readonly Event[],
  about: { readonly account: AccountId; readonly cause: Cause; readonly lastAt: Timestamp | null },
): readonly NewEvent[] {
  const occurredAt = later(context.clock.now(), about.lastAt);
  return events.map((event) => ({
    id: context.ids.next<EventId>(),
    type: event.type,
    version: decider.kinds[event.type as Event['type']].version,
    accountId: about.account,
    occurredAt,
    actor: about.cause.actor,
    requestId: about.cause.requestId,
    sourceAddressRef: about.cause.sourceAddressRef,
    causationId: about.cause.causationId,
    data: event.data,
  }));
}

/** Appends at the entity's revision and folds the result into memory at once. An empty list commits nothing. */
export async function appendTo(
  context: Context,
  entity: Entity<unknown>,
  events: readonly NewEvent[],
  guards: readonly StreamGuard[],
): Promise<AppendResult> {
  const first = entity.revision === 'none' ? 0 : entity.revision + 1;
  const result = await context.events.append({ stream: entity.stream, expected: entity.revision, events, guards });
  if (result.outcome === 'appended') context.entities.observe(entity.stream, first, result.position, events);
  return result;
}

/** A guard lost its race: what it stood for must be looked at anew. Null when the decision still holds. */
export type Guarding = () => Promise<{ readonly guards: readonly StreamGuard[] } | { readonly refused: Refusal }>;

const NO_GUARDS: Guarding = async () => ({ guards: [] });

/** Lost races before a use case gives up; each means that somebody else's append succeeded meanwhile. */
const RACES_MAX = 100;

export interface Executed<State> {
  readonly entity: Entity<State>;
}

/**
 * Decides on the aggregate's current state and appends; decides again whenever somebody else was first.
 * `guarding` is asked before each try for the guards to carry. Returns the state after the append.
 */
export async function execute<State, Event extends AnyEvent>(
  context: Context,
  decider: Decider<State, Event>,
  id: string,
  about: { readonly account: AccountId; readonly cause: Cause; readonly guarding?: Guarding },
  decide: (state: State) => Decision<Event>,
): Promise<Executed<State> | { readonly refused: Refusal }> {
  const guarding = about.guarding ?? NO_GUARDS;
  let entity = await context.entities.get(decider, id);
  for (let race = 0; race < RACES_MAX; race += 1) {
    const guarded = await guarding();
    if ('refused' in guarded) return guarded;
    const decision = decide(entity.state);
    if ('refused' in decision) {
      // A refusal from memory may rest on a state that is behind: only the log's own word refuses.
      const current = await context.entities.reload(decider, id);
      if (current.revision === entity.revision) return decision;
      entity = current;
      continue;
    }
    if (decision.events.length === 0) return { entity };
    const events = envelop(context, decider, decision.events, { ...about, lastAt: entity.lastAt });
    // The commit point of this use case.
    const result = await appendTo(context, entity, events, guarded.guards);
    entity = await context.entities.reload(decider, id);
    if (result.outcome === 'appended') return { entity };
  }
  throw new Error(`${RACES_MAX} lost races on ${entity.stream}`);
}
