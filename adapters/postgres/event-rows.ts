/**
 * Events between their rows and their types.
 *
 * Must stay true: rows were checked by `checkAppend` when they were written, so reading them trusts their form.
 */
import type { ActorKind, LogPosition, NewEvent, RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';

/** A row as pg returns it: int8 is text. */
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
}

/** An event as the append function takes it; position, stream and revision are not its caller's to say. */
export type NewEventRow = Omit<EventRow, 'position' | 'stream' | 'revision'>;

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
  };
}

export function toRecordedEvent(row: EventRow): RecordedEvent {
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
    data: JSON.parse(row.data) as JsonObject,
    stream: row.stream as StreamName,
    revision: row.revision,
    position: BigInt(row.position) as LogPosition,
  };
}
