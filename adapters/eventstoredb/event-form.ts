/**
 * Events between the port's form and EventStoreDB's.
 *
 * Must stay true: the bytes of an event's data are its canonical JSON text (RFC 8785), exactly, and come back so;
 * its envelope is canonical JSON in the metadata. Both are for ever.
 *
 * Data is marked as JSON, which EventStoreDB shows and projects, whenever the client would write exactly the
 * canonical text; else (keys that read like array indices, which JSON.stringify puts first) it is marked as bytes.
 */
import {
  type BinaryEventData,
  binaryEvent,
  type JSONEventData,
  jsonEvent,
  type ResolvedEvent,
} from '@eventstore/db-client';
import type { ActorKind, LogPosition, NewEvent, RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../core/kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../core/kernel/json.ts';
import { EventStoreError } from '../../core/ports/event-store.ts';

export type ProposedEvent = JSONEventData | BinaryEventData;

/** An event as the client takes it. `dataText` is what `checkAppend` made of its data, so no BigInt gets this far. */
export function toProposed(event: NewEvent, dataText: string): ProposedEvent {
  const metadata = Uint8Array.from(Buffer.from(canonicalJson(metadataOf(event))));
  const common = { id: event.id, type: event.type, metadata };
  const data = JSON.parse(dataText) as JsonObject;
  return JSON.stringify(data) === dataText
    ? jsonEvent({ ...common, data })
    : binaryEvent({ ...common, data: Buffer.from(dataText) });
}

/** Bytes as EventStoreDB counts them against its limit: its type names are UTF-16. */
export function storedBytes(event: NewEvent, dataText: string): number {
  const metadataBytes = Buffer.byteLength(canonicalJson(metadataOf(event)));
  return Buffer.byteLength(dataText) + metadataBytes + 2 * event.type.length;
}

function metadataOf(event: NewEvent): JsonObject {
  return {
    account_id: event.accountId,
    actor: { kind: event.actor.kind, id: event.actor.id },
    causation_id: event.causationId,
    occurred_at: event.occurredAt,
    request_id: event.requestId,
    source_address_ref: event.sourceAddressRef,
    version: event.version,
  };
}

/** Whether an event is the server's own: those stand in the log too, and have its positions. */
export function isSystemStream(stream: string): boolean {
  return stream.startsWith('$');
}

/**
 * The port's position of an event: one more than its commit position, so that 0 stays before the first. An event
 * written over gRPC has the same commit and prepare position, which no other event has.
 */
export function toLogPosition(commit: bigint): LogPosition {
  return (commit + 1n) as LogPosition;
}

/** The client's form of a position that an event has. */
export function toEsdbPosition(position: LogPosition): { readonly commit: bigint; readonly prepare: bigint } {
  return { commit: position - 1n, prepare: position - 1n };
}

/** What the client gives for an event; a link whose event is gone has none. */
export type ReceivedEvent = NonNullable<ResolvedEvent['event']>;

/** Where an event stands. Servers before 22.6 do not say it of events read from a stream. */
export function positionOf({ position }: ReceivedEvent): LogPosition {
  if (position === undefined || position.commit >= 2n ** 63n) {
    throw new EventStoreError('log-unavailable', 'This EventStoreDB tells no positions: it is before 22.6');
  }
  return toLogPosition(position.commit);
}

/** The event in the port's form; null for one that Strata did not write. */
export function toRecorded(event: ReceivedEvent): RecordedEvent | null {
  const envelope = envelopeOf(event.metadata);
  const data = dataOf(event);
  if (envelope === null || data === null) return null;
  return {
    ...envelope,
    id: event.id as EventId,
    type: event.type,
    data,
    stream: event.streamId as StreamName,
    revision: Number(event.revision),
    position: positionOf(event),
  };
}

function dataOf(event: ReceivedEvent): JsonObject | null {
  const data: unknown = event.isJson ? event.data : parsed(event.data);
  return isObject(data) ? (data as JsonObject) : null;
}

function parsed(data: unknown): unknown {
  if (!(data instanceof Uint8Array)) return null;
  try {
    return JSON.parse(Buffer.from(data).toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

function envelopeOf(metadata: unknown): Omit<NewEvent, 'id' | 'type' | 'data'> | null {
  if (!isObject(metadata) || !isObject(metadata['actor'])) return null;
  const { account_id, causation_id, occurred_at, request_id, source_address_ref, version } = metadata;
  const { kind, id } = metadata['actor'];
  const texts = [occurred_at, request_id, kind, id].every((text) => typeof text === 'string');
  const nullable = [account_id, causation_id, source_address_ref].every((t) => t === null || typeof t === 'string');
  if (!texts || !nullable || typeof version !== 'number') return null;
  return {
    version,
    accountId: account_id as AccountId | null,
    occurredAt: occurred_at as Timestamp,
    actor: { kind: kind as ActorKind, id: id as string },
    requestId: request_id as string,
    sourceAddressRef: source_address_ref as string | null,
    causationId: causation_id as EventId | null,
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
