/**
 * Translates events between the port's form and EventStoreDB's.
 *
 * Invariants: the stored bytes of an event's data are exactly its canonical JSON text (RFC 8785), and a read
 * returns the same data; the event's envelope is canonical JSON in the metadata. Both forms are permanent.
 *
 * Data is marked as JSON, which EventStoreDB can show and project, when the client would write exactly the canonical
 * text. It is marked as bytes otherwise: JSON.stringify puts keys that look like array indices first.
 */
import {
  type BinaryEventData,
  binaryEvent,
  type JSONEventData,
  jsonEvent,
  type ResolvedEvent,
} from '@eventstore/db-client';
import {
  type ActorKind,
  isRecordByCategory,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamName,
} from '../../core/kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../core/kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../core/kernel/json.ts';
import { EventStoreError } from '../../core/ports/event-store.ts';

export type ProposedEvent = JSONEventData | BinaryEventData;

/** An event's place in its append. */
export interface PlaceInAppend {
  /** From 0. */
  readonly index: number;
  /** How many events the append has. */
  readonly count: number;
}

export interface Proposal {
  /** The event in the client's form. */
  readonly proposed: ProposedEvent;
  /** The size as EventStoreDB counts it against its limit on appends: it counts type names as UTF-16. */
  readonly storedBytes: number;
}

/** `dataText` is the canonical JSON of the event's data, from `checkAppend`, which refuses a BigInt. */
export function toProposal(event: NewEvent, dataText: string, place: PlaceInAppend): Proposal {
  const metadata = Uint8Array.from(Buffer.from(canonicalJson(metadataOf(event, place))));
  const common = { id: event.id, type: event.type, metadata };
  const data = JSON.parse(dataText) as JsonObject;
  const proposed =
    JSON.stringify(data) === dataText
      ? jsonEvent({ ...common, data })
      : binaryEvent({ ...common, data: Buffer.from(dataText) });
  return { proposed, storedBytes: Buffer.byteLength(dataText) + metadata.length + 2 * event.type.length };
}

/** The only event of its append has no place in its metadata, as events of an earlier form have none. */
function metadataOf(event: NewEvent, { index, count }: PlaceInAppend): JsonObject {
  return {
    ...(count === 1 ? {} : { append_count: count, append_index: index }),
    account_id: event.accountId,
    actor: { kind: event.actor.kind, id: event.actor.id },
    causation_id: event.causationId,
    is_record: event.isRecord,
    occurred_at: event.occurredAt,
    request_id: event.requestId,
    source_address_ref: event.sourceAddressRef,
    version: event.version,
  };
}

/** Whether the server itself wrote the event, such as a tombstone: it is in the log too, and has a position. */
export function isSystemEvent({ streamId, type }: Pick<ReceivedEvent, 'streamId' | 'type'>): boolean {
  return streamId.startsWith('$') || type.startsWith('$');
}

/**
 * The port's position of an event: its commit position plus one, so that 0 is before the first event. An event that was
 * written over gRPC has equal commit and prepare positions, and no other event has the same.
 */
export function toLogPosition(commit: bigint): LogPosition {
  return (commit + 1n) as LogPosition;
}

/** The client's form of the position of an event. */
export function toEsdbPosition(position: LogPosition): { readonly commit: bigint; readonly prepare: bigint } {
  return { commit: position - 1n, prepare: position - 1n };
}

/** An event in the client's form. The client returns none for a link whose event was removed. */
export type ReceivedEvent = NonNullable<ResolvedEvent['event']>;

/** The event's position. Servers before 22.6 do not send it for events that are read from a stream. */
export function positionOf({ position }: ReceivedEvent): LogPosition {
  if (position === undefined || position.commit >= 2n ** 63n) {
    throw new EventStoreError('log-unavailable', 'This EventStoreDB sends no positions: it is before 22.6');
  }
  return toLogPosition(position.commit);
}

/** The event in the port's form; null for one that Strata did not write. */
export function toRecorded(event: ReceivedEvent): RecordedEvent | null {
  const envelope = envelopeOf(event.metadata);
  const data = dataOf(event);
  if (envelope === null || data === null) return null;
  const stream = event.streamId as StreamName;
  return {
    ...envelope,
    id: event.id as EventId,
    type: event.type,
    isRecord: envelope.isRecord ?? isRecordByCategory(stream),
    data,
    stream,
    revision: Number(event.revision),
    position: positionOf(event),
  };
}

function dataOf(event: ReceivedEvent): JsonObject | null {
  const data: unknown = event.isJson ? event.data : parseBytes(event.data);
  return isObject(data) ? (data as JsonObject) : null;
}

function parseBytes(data: unknown): unknown {
  if (!(data instanceof Uint8Array)) return null;
  try {
    return JSON.parse(Buffer.from(data).toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

interface Envelope
  extends Omit<NewEvent, 'id' | 'type' | 'data' | 'isRecord'>,
    Pick<RecordedEvent, 'appendIndex' | 'appendCount'> {
  /** Null for an event of a form that did not store it. */
  readonly isRecord: boolean | null;
}

function envelopeOf(metadata: unknown): Envelope | null {
  if (!isObject(metadata) || !isObject(metadata['actor'])) return null;
  const { account_id, causation_id, occurred_at, request_id, source_address_ref, version } = metadata;
  const { append_index = 0, append_count = 1, is_record = null } = metadata;
  const { kind, id } = metadata['actor'];
  const texts = [occurred_at, request_id, kind, id].every((text) => typeof text === 'string');
  const nullable = [account_id, causation_id, source_address_ref].every((t) => t === null || typeof t === 'string');
  if (!texts || !nullable || typeof version !== 'number') return null;
  if (is_record !== null && typeof is_record !== 'boolean') return null;
  if (typeof append_index !== 'number' || typeof append_count !== 'number') return null;
  return {
    version,
    accountId: account_id as AccountId | null,
    occurredAt: occurred_at as Timestamp,
    actor: { kind: kind as ActorKind, id: id as string },
    requestId: request_id as string,
    sourceAddressRef: source_address_ref as string | null,
    causationId: causation_id as EventId | null,
    isRecord: is_record,
    appendIndex: append_index,
    appendCount: append_count,
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
