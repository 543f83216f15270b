/**
 * The shape every aggregate has: events folded into a state by `evolve`, decisions made from it by `decide`.
 *
 * Must stay true: both are pure; time, ids and hashes reach them as data. Events are upcast to their current
 * version before `evolve` sees them, and an event type that the catalogue does not know fails the load:
 * deciding on half a history is worse than not answering.
 */
import type { RecordedEvent } from './envelope.ts';
import type { Timestamp } from './ids.ts';
import type { JsonObject } from './json.ts';
import type { Refusal } from './refusal.ts';

/** An event of a given type as the domain sees it: its data in the stored form of the current version. */
export interface DomainEvent<Type extends string, Data extends JsonObject> {
  readonly type: Type;
  readonly data: Data;
}

/** Either the events to append, possibly none, or why not. */
export type Decision<Event> = { readonly events: readonly Event[] } | { readonly refused: Refusal };

export function accept<Event>(...events: readonly Event[]): { readonly events: readonly Event[] } {
  return { events };
}

export function refuse(refused: Refusal): { readonly refused: Refusal } {
  return { refused };
}

/** How one event type is stored. */
export interface EventKind {
  /** The version written today. */
  readonly version: number;
  /** Record events are kept for ever and make up an account's log; operational ones are pruned (audit). */
  readonly record: boolean;
  /** `upcasters[n]` turns the data of version n + 1 into that of version n + 2. */
  readonly upcasters: readonly ((data: JsonObject) => JsonObject)[];
}

export type EventKinds<Event extends { readonly type: string }> = { readonly [Type in Event['type']]: EventKind };

/** The first version of a record event. */
export const RECORD_V1: EventKind = { version: 1, record: true, upcasters: [] };
/** The first version of an operational event. */
export const OPERATIONAL_V1: EventKind = { version: 1, record: false, upcasters: [] };

export interface SnapshotCodec<State> {
  /** Raise it whenever the meaning of a snapshot changes: older ones are then ignored. */
  readonly version: number;
  /** Null for states that are not worth one. */
  write(state: State): JsonObject | null;
  /** Gets only what `write` of the same version gave. */
  read(snapshot: JsonObject): State;
}

export interface Decider<State, Event extends DomainEvent<string, JsonObject>> {
  /** The text before the dash in its streams' names. */
  readonly category: string;
  readonly kinds: EventKinds<Event>;
  readonly initial: State;
  evolve(state: State, event: Event, at: Timestamp): State;
  /** For streams that may grow long; null where folding from the first event is always cheap. */
  readonly snapshots: SnapshotCodec<State> | null;
  /** Memory a state takes, roughly: bounds the cache of entities. */
  sizeBytes(state: State): number;
}

export class UnknownEventError extends Error {
  override readonly name = 'UnknownEventError';
  readonly code = 'unknown-event';
}

/**
 * The event in its current version, typed as the aggregate's union: the one place where stored data is trusted.
 * Throws `UnknownEventError` for a type or a version that this program does not know.
 */
export function readEvent<Event extends DomainEvent<string, JsonObject>>(
  kinds: EventKinds<Event>,
  recorded: Pick<RecordedEvent, 'stream' | 'revision' | 'type' | 'version' | 'data'>,
): Event {
  const { stream, revision, type, version } = recorded;
  const known: { readonly [type: string]: EventKind } = kinds;
  const kind = Object.hasOwn(known, type) ? known[type] : undefined;
  if (kind === undefined || version < 1 || version > kind.version) {
    throw new UnknownEventError(`${stream} revision ${revision} holds ${type} version ${version}, unknown here`);
  }
  let data = recorded.data;
  for (const upcast of kind.upcasters.slice(version - 1)) data = upcast(data);
  return parseUpcast<Event>({ type, data });
}

/** Every version of the type leads here through its upcasters, each proven by a golden file. */
function parseUpcast<Event extends DomainEvent<string, JsonObject>>(upcast: DomainEvent<string, JsonObject>): Event {
  return upcast as Event;
}
