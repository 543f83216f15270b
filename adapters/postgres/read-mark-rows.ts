/** Converts read marks, which say how far a reader has read the log, to columns of a table and back. */
import { categoryOf, entityIdOf, type LogPosition, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { uuid } from '../../core/kernel/ids.ts';
import type { ReadMark } from '../../core/ports/read-mark.ts';

/** `pg` returns int8 as text. */
export interface ReadMarkRow {
  readonly position: string;
  /** Null in a row that an older version saved; the record event is then the event at `position`. */
  readonly event_position: string | null;
  readonly stream: StreamName;
  readonly revision: number;
  readonly event_id: string;
}

export const READ_MARK_COLUMNS = 'position, stream, revision, event_id, event_position';

/** Returns the values in the order of `READ_MARK_COLUMNS`. */
export function readMarkValues({ position, record }: ReadMark): readonly unknown[] {
  return [position, record.stream, record.revision, record.eventId, record.position];
}

/** Returns the mark of the row, or null without a row. */
export function toReadMark(row: ReadMarkRow | undefined): ReadMark | null {
  if (row === undefined) return null;
  const stream = streamName(categoryOf(row.stream), entityIdOf(row.stream));
  const position = BigInt(row.position) as LogPosition;
  const eventPosition = row.event_position === null ? position : (BigInt(row.event_position) as LogPosition);
  return { position, record: { position: eventPosition, stream, revision: row.revision, eventId: uuid(row.event_id) } };
}
