/**
 * The envelope of every event: who caused it, when, in which account, and for which request.
 *
 * Invariants: it holds no secret and no erasable personal data (docs/architecture.md, invariant 5);
 * `sourceAddressRef` is a vault reference, never an address.
 */
import { type AccessTokenId, type AccountId, type Brand, type EventId, parseUuid, type Timestamp } from './ids.ts';
import type { JsonObject } from './json.ts';

/** `<category>-<id>`. The category holds no dash, because EventStoreDB takes the text before the first as category. */
export type StreamName = Brand<string, 'StreamName'>;

/** Returns the stream of an entity. Names never change. Only an id that is a UUID or a username may hold dashes. */
export function streamName(category: string, id: string): StreamName {
  if (!/^[A-Za-z]+$/.test(category) || id === '') throw new TypeError(`Not a stream: ${category}-${id}`);
  return `${category}-${id}` as StreamName;
}

/** Returns the category of a stream: the text before its first dash. */
export function categoryOf(stream: StreamName): string {
  return stream.slice(0, stream.indexOf('-'));
}

/** Returns the id of a stream's entity: the text after its first dash. */
export function entityIdOf(stream: StreamName): string {
  return stream.slice(stream.indexOf('-') + 1);
}

/**
 * The categories whose events are operational if their envelope has no `isRecord`: events stored before it existed. The
 * list never changes.
 */
export const LEGACY_OPERATIONAL_CATEGORIES: readonly string[] = ['transfer', 'webhookDelivery'];

/** Returns whether an event is a record event, for events that were stored without `NewEvent.isRecord`. */
export function isRecordByCategory(stream: StreamName): boolean {
  return !LEGACY_OPERATIONAL_CATEGORIES.includes(categoryOf(stream));
}

export type ActorKind = 'token' | 'user' | 'trust_rule' | 'system' | 'admin';

/** Who caused an event. The id of a `system` actor names a policy, that of an `admin` actor a command. */
export interface Actor {
  readonly kind: ActorKind;
  readonly id: string;
}

/** Returns the access token that the actor is; null for any other actor. */
export function accessTokenOf({ kind, id }: Actor): AccessTokenId | null {
  return kind === 'token' ? parseUuid<AccessTokenId>(id) : null;
}

/** The origin of a request or of a policy's action; every event that it causes carries these fields. */
export interface Cause {
  readonly actor: Actor;
  readonly requestId: string;
  readonly sourceAddressRef: string | null;
  readonly causationId: EventId | null;
}

/** An event to append: it has no place in a stream yet. */
export interface NewEvent extends Cause {
  readonly id: EventId;
  readonly type: string;
  readonly version: number;
  /** The account whose log it belongs to; null if it belongs to none. */
  readonly accountId: AccountId | null;
  /** The clock's time, or that of the stream's previous event if later: times in a stream never decrease. */
  readonly occurredAt: Timestamp;
  /**
   * Record events are kept permanently and make up an account's log; operational events are pruned. Fixed when the
   * event is written: a later change of its type's kind does not affect it.
   */
  readonly isRecord: boolean;
  readonly data: JsonObject;
}

/** The position of an event in the whole log: opaque, and ordered by `<`. Zero is before the first event. */
export type LogPosition = Brand<bigint, 'LogPosition'>;
export const LOG_START = 0n as LogPosition;

/** Positions have gaps, so no event need be there. */
export function positionBefore(position: LogPosition): LogPosition {
  return logPosition(position - 1n);
}

function logPosition(position: bigint): LogPosition {
  return position as LogPosition;
}

/** An event as the log returns it: in its stored version, not upcast. */
export interface RecordedEvent extends NewEvent {
  readonly stream: StreamName;
  /** The number of the event in its stream, from 0, without gaps. */
  readonly revision: number;
  readonly position: LogPosition;
  /**
   * Its index in its append, from 0, and how many events the append has. The log keeps both beside the event; they are
   * not part of it. An event that was stored before logs kept them counts as an append of one event.
   */
  readonly appendIndex: number;
  readonly appendCount: number;
}

/** An event with its place in its stream, without its place in an append: what folding needs. */
export type StreamEvent = Omit<RecordedEvent, 'appendIndex' | 'appendCount'>;
