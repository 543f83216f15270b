/**
 * The form of every aggregate: `evolve` folds events into a state, and `decide` makes decisions from the state.
 *
 * Invariants: both are pure functions that receive time, ids and hashes as data. Events are upcast to their current
 * version before `evolve` receives them, and are written in an older one while a program runs that reads no newer one.
 * An event type that the catalogue does not contain fails the load, because a decision on an incomplete history is
 * worse than none.
 */
import type { RecordedEvent } from './envelope.ts';
import type { Timestamp } from './ids.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Refusal } from './refusal.ts';

/** An event of one type as the domain uses it: the data have the stored form of the current version. */
export interface DomainEvent<Type extends string, Data extends JsonObject> {
  readonly type: Type;
  readonly data: Data;
}

/** The events to append, possibly none, or a refusal. */
export type Decision<Event> = { readonly events: readonly Event[] } | { readonly refused: Refusal };

export function accept<Event>(...events: readonly Event[]): { readonly events: readonly Event[] } {
  return { events };
}

export function refuse(refused: Refusal): { readonly refused: Refusal } {
  return { refused };
}

/** How one event type is stored. */
export interface EventKind {
  /** The current version: the highest one that this program reads, and the form that the domain uses. */
  readonly version: number;
  /** Whether new events of the type are record events (`NewEvent.isRecord`). */
  readonly record: boolean;
  /** `upcasters[n]` turns the data of version n + 1 into those of version n + 2. */
  readonly upcasters: readonly ((data: JsonObject) => JsonObject)[];
  /**
   * `downcasters[n]` turns the data of `version - n` into those of the version before, which is written while a program
   * runs that reads no newer one. Absent: the current version is always written. The last one of a type that such a
   * program does not know is `notWritten`.
   */
  readonly downcasters?: readonly ((data: JsonObject) => JsonObject)[];
}

export type EventKinds<Event extends { readonly type: string }> = { readonly [Type in Event['type']]: EventKind };

/** The kind of a record event in its first version. */
export const RECORD_V1: EventKind = { version: 1, record: true, upcasters: [] };
/**
 * The kind of a record event in its first version, of a type that is new: programs may run beside this one that do not
 * know it.
 */
export const NEW_RECORD_V1: EventKind = { ...RECORD_V1, downcasters: [notWritten] };
/** The kind of an operational event in its first version. */
export const OPERATIONAL_V1: EventKind = { version: 1, record: false, upcasters: [] };

export interface SnapshotCodec<State> {
  /** Raise it whenever the meaning of a snapshot changes: snapshots of older versions are then ignored. */
  readonly version: number;
  /** Returns the snapshot's data; null for a state that is not worth a snapshot. */
  write(state: State): JsonObject | null;
  /** Receives only data that `write` of the same version returned. */
  read(snapshot: JsonObject): State;
  /**
   * For a part of the state that may be large, which `write` and `read` leave out: it is written and read in parts,
   * between which others have the event loop.
   */
  readonly parts?: SnapshotParts<State>;
}

/** Parts of a snapshot, each of some ten kilobytes. */
export type Parts = Iterable<JsonValue> | AsyncIterable<JsonValue>;

export interface SnapshotParts<State> {
  /** Makes a part when it is asked for. */
  write(state: State): Iterable<JsonValue>;
  /** Returns the state, as `read` of the codec returned it, with what the parts hold. */
  read(state: State, parts: Parts): Promise<State>;
}

export interface Decider<State, Event extends DomainEvent<string, JsonObject>> {
  /** The text before the first dash in the names of its streams. */
  readonly category: string;
  readonly kinds: EventKinds<Event>;
  readonly initial: State;
  evolve(state: State, event: Event, at: Timestamp): State;
  /** For streams that may grow long; null if folding from the first event is always cheap. */
  readonly snapshots: SnapshotCodec<State> | null;
  /** Returns roughly how much memory a state takes, which bounds the cache of entities. */
  sizeBytes(state: State): number;
}

export class UnknownEventError extends Error {
  override readonly name = 'UnknownEventError';
  readonly code = 'unknown-event';
}

/**
 * Returns the event in its current version, typed as the aggregate's union: the only place that trusts stored data.
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

/**
 * Stands for the form before the first version of a new type: there is none, so nothing is written until every program
 * that runs knows the type. Use cases refuse before that (`isNotWritten`).
 */
export function notWritten(): never {
  throw new TypeError('An event of a type that is not written yet');
}

/** Whether no version of a new type is written yet. */
export function isNotWritten(kind: EventKind, writtenMax: number): boolean {
  return writtenMax < 1 && oldestWritten(kind) < 1;
}

/** Returns the oldest version that this program can write; 0 if it can do without the type. */
export function oldestWritten({ version, downcasters = [] }: EventKind): number {
  return version - downcasters.length;
}

/**
 * Returns the event in the version that is to be written: at most `writtenMax`, and the current one if that is lower.
 * Throws TypeError if this program cannot write as old a version.
 */
export function downcast<Type extends string>(
  kind: EventKind,
  { type, data }: DomainEvent<Type, JsonObject>,
  writtenMax: number,
): { readonly type: Type; readonly version: number; readonly data: JsonObject } {
  const version = Math.min(kind.version, writtenMax);
  if (version < oldestWritten(kind)) throw new TypeError(`${type} is not written in version ${version} any more`);
  let written = data;
  for (const down of (kind.downcasters ?? []).slice(0, kind.version - version)) written = down(written);
  return { type, version, data: written };
}

/** Types upcast data. A golden file for each version proves that its upcasters give this form. */
function parseUpcast<Event extends DomainEvent<string, JsonObject>>(upcast: DomainEvent<string, JsonObject>): Event {
  return upcast as Event;
}
