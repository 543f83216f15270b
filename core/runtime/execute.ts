/**
 * Load, decide, append: how every use case changes an aggregate, with one commit point.
 *
 * Invariants: after a lost race the use case decides again, from the new state. The append expects the revision
 * that the decision was made at, and carries every guard that the decision relied on. A decision that appends nothing,
 * whether a refusal or no change, is returned only after the log has confirmed the revision that it was made at.
 */
import {
  type Decider,
  type Decision,
  type DomainEvent,
  downcast,
  type EventKind,
  isNotWritten,
  refuse,
} from '../kernel/decider.ts';
import type { Cause, LogPosition, NewEvent } from '../kernel/envelope.ts';
import { type AccountId, type EventId, later, type Timestamp } from '../kernel/ids.ts';
import type { Refusal } from '../kernel/refusal.ts';
import type { Clock, Ids } from '../ports/clock.ts';
import type { EventStore, StreamGuard } from '../ports/event-store.ts';
import type { WrittenForms } from '../ports/running-processes.ts';
import type { Entities } from './entities.ts';
import { type AnyEvent, advance, type Entity, nextRevision } from './entity.ts';

/** What every use case needs. */
export interface Context {
  readonly events: EventStore;
  readonly entities: Entities;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly written: WrittenForms;
}

/**
 * Puts domain events into envelopes, each in the version that is written now. It is chosen here and not at the append:
 * a repeated append has the same content. Their time is the clock's, but never before the stream's last event.
 */
export function envelop<Type extends string>(
  context: Pick<Context, 'clock' | 'ids' | 'written'>,
  decider: { readonly kinds: { readonly [T in Type]: EventKind } },
  events: readonly DomainEvent<Type, NewEvent['data']>[],
  about: { readonly account: AccountId | null; readonly cause: Cause; readonly lastAt: Timestamp | null },
): readonly NewEvent[] {
  const occurredAt = later(context.clock.now(), about.lastAt);
  const { actor, requestId, sourceAddressRef, causationId } = about.cause;
  return events.map((event) => ({
    id: context.ids.next<EventId>(),
    ...downcast(decider.kinds[event.type], event, context.written.versionOf(event.type)),
    accountId: about.account,
    occurredAt,
    actor,
    requestId,
    sourceAddressRef,
    causationId,
    isRecord: decider.kinds[event.type].record,
  }));
}

/** Returns the guards to append with, or a refusal. Called before each try: after a lost race it must read again. */
export type Guarding = () => Promise<{ readonly guards: readonly StreamGuard[] } | { readonly refused: Refusal }>;

const NO_GUARDS: Guarding = async () => ({ guards: [] });

/** How many races a use case may lose before it gives up. Each means that another append came first. */
export const RACES_MAX = 100;

export interface Executed<State> {
  /** The aggregate right after this use case's own events, without events that others appended since. */
  readonly entity: Entity<State>;
}

/**
 * Decides on the aggregate's current state and appends. Decides again whenever another append won the race. Calls
 * `guarding` before each try for the guards of the append. A decision without events commits nothing. One with an
 * event that a program which may run does not know is refused.
 */
export async function execute<State, Event extends AnyEvent>(
  context: Omit<Context, 'events'> & { readonly events: Pick<EventStore, 'append'> },
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
    const decision = unlessNotWritten(context, decider, decide(entity.state));
    if ('refused' in decision || decision.events.length === 0) {
      // The state in memory may be behind the log: return the decision only if the log is at the same revision.
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

function unlessNotWritten<Event extends AnyEvent>(
  { written }: Pick<Context, 'written'>,
  { kinds }: { readonly kinds: { readonly [Type in Event['type']]: EventKind } },
  decision: Decision<Event>,
): Decision<Event> {
  if ('refused' in decision) return decision;
  const isRefused = (type: Event['type']): boolean => isNotWritten(kinds[type], written.versionOf(type));
  return decision.events.some(({ type }) => isRefused(type)) ? refuse({ code: 'upgrade-not-finished' }) : decision;
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
