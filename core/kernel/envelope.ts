/**
 * The envelope every event travels in: who did what, when, on whose account.
 *
 * Must stay true: nothing in it is a secret or erasable personal data (architecture, invariant 5);
 * `sourceAddressRef` is a vault reference, never an address.
 */
import type { AccountId, Brand, EventId, Timestamp } from './ids.ts';
import type { JsonObject } from './json.ts';

/** `<category>-<id>`: one dash, since EventStoreDB takes the text before the first as the category. */
export type StreamName = Brand<string, 'StreamName'>;

/** The stream of one entity. Names are for ever: the id must hold no dash unless it is a UUID or a username. */
export function streamName(category: string, id: string): StreamName {
  if (!/^[A-Za-z]+$/.test(category) || id === '') throw new TypeError(`Not a stream: ${category}-${id}`);
  return `${category}-${id}` as StreamName;
}

/** The category of a stream: the text before its first dash. */
export function categoryOf(stream: StreamName): string {
  return stream.slice(0, stream.indexOf('-'));
}

/** The id of a stream's entity: the text after its first dash. */
export function entityIdOf(stream: StreamName): string {
  return stream.slice(stream.indexOf('-') + 1);
}

export type ActorKind = 'token' | 'user' | 'trust_rule' | 'system' | 'admin';

/** Who caused an event; the id of a `system` or `admin` actor names the part or the command. */
export interface Actor {
  readonly kind: ActorKind;
  readonly id: string;
}

/** What a request knows about its origin; every event it causes carries this. */
export interface Cause {
  readonly actor: Actor;
  readonly requestId: string;
  readonly sourceAddressRef: string | null;
  readonly causationId: EventId | null;
}

/** An event as it is handed to the log: not yet in a stream. */
export interface NewEvent extends Cause {
  readonly id: EventId;
  readonly type: string;
  readonly version: number;
  /** The account whose record it belongs to; null for events of no account. */
  readonly accountId: AccountId | null;
  /** The later of the clock and the stream's previous event, so that a stream's times never go back. */
  readonly occurredAt: Timestamp;
  readonly data: JsonObject;
}

/** Where in the whole log an event stands: opaque, ordered, comparable with `<`. Zero is before the first. */
export type LogPosition = Brand<bigint, 'LogPosition'>;
export const LOG_START = 0n as LogPosition;

/** An event as the log returns it: always the stored version, never upcast. */
export interface RecordedEvent extends NewEvent {
  readonly stream: StreamName;
  /** The number of the event in its stream, from 0, without gaps. */
  readonly revision: number;
  readonly position: LogPosition;
}
