/** Where a policy stopped reading the log, as tables hold it. */
import { categoryOf, entityIdOf, type LogPosition, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { uuid } from '../../core/kernel/ids.ts';
import type { ReadMark } from '../../core/ports/vault-references.ts';

/** `pg` returns int8 as text. */
export interface ReadMarkRow {
  readonly position: string;
  readonly stream: StreamName;
  readonly revision: number;
  readonly event_id: string;
}

export const READ_MARK_COLUMNS = 'position, stream, revision, event_id';

/** The mark in the row, or null without one. */
export function toReadMark(row: ReadMarkRow | undefined): ReadMark | null {
  if (row === undefined) return null;
  const stream = streamName(categoryOf(row.stream), entityIdOf(row.stream));
  const position = BigInt(row.position) as LogPosition;
  return { position, stream, revision: row.revision, eventId: uuid(row.event_id) };
}
