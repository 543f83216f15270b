/**
 * Converts events to rows of the table `events`, and back.
 *
 * Invariants: only events that passed `checkAppend` are written, so reading a row does not validate it again.
 */
import {
  type ActorKind,
  isRecordByCategory,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamName,
} from '../../core/kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { type EventPlace, EventStoreError } from '../../core/ports/event-store.ts';

/** A row as pg returns it, with int8 as text. */
export interface EventRow {
  readonly position: string;
  readonly stream: string;
  readonly revision: number;
  readonly event_id: string;
  readonly type: string;
  readonly version: number;
  readonly account_id: string | null;
  readonly occurred_at: string;
  readonly actor_kind: string;
  readonly actor_id: string;
  readonly request_id: string;
  readonly source_address_ref: string | null;
  readonly causation_id: string | null;
  readonly data: string;
  /** Null for an event that was stored before the column existed; `isRecordUnlessSaid` then decides by its category. */
  readonly is_record: boolean | null;
  readonly append_index: number;
  readonly append_count: number;
}

/** An event as append_events takes it. The function itself decides position, revision and place in the append. */
export type NewEventRow = Omit<EventRow, 'position' | 'stream' | 'revision' | 'append_index' | 'append_count'>;

export function toNewRow(event: NewEvent, dataText: string): NewEventRow {
  return {
    event_id: event.id,
    type: event.type,
    version: event.version,
    account_id: event.accountId,
    occurred_at: event.occurredAt,
    actor_kind: event.actor.kind,
    actor_id: event.actor.id,
    request_id: event.requestId,
    source_address_ref: event.sourceAddressRef,
    causation_id: event.causationId,
    data: dataText,
    is_record: event.isRecord,
  };
}

/** Throws `event-unreadable` if the data is no JSON: then somebody changed the row. */
export function toRecordedEvent(row: EventRow): RecordedEvent {
  const stream = row.stream as StreamName;
  const position = BigInt(row.position) as LogPosition;
  return {
    id: row.event_id as EventId,
    type: row.type,
    version: row.version,
    accountId: row.account_id as AccountId | null,
    occurredAt: row.occurred_at as Timestamp,
    actor: { kind: row.actor_kind as ActorKind, id: row.actor_id },
    requestId: row.request_id,
    sourceAddressRef: row.source_address_ref,
    causationId: row.causation_id as EventId | null,
    isRecord: row.is_record ?? isRecordByCategory(stream),
    data: parseData(row.data, { stream, revision: row.revision, position }),
    stream,
    revision: row.revision,
    position,
    appendIndex: row.append_index,
    appendCount: row.append_count,
  };
}

function parseData(text: string, place: EventPlace): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch (cause) {
    const { stream, revision, position } = place;
    const message = `${stream} revision ${revision} at position ${position} cannot be read`;
    throw new EventStoreError('event-unreadable', message, { cause, unreadableAt: position });
  }
}
