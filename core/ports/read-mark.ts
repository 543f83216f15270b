import type { LogPosition, StreamName } from '../kernel/envelope.ts';
import type { EventId } from '../kernel/ids.ts';

/** The place of a record event: enough to tell whether a log still holds it there. */
export interface RecordPlace {
  readonly position: LogPosition;
  readonly stream: StreamName;
  readonly revision: number;
  readonly eventId: EventId;
}

/** A checkpoint: how far a reader has read the log. */
export interface ReadMark {
  /** The position of the last event that was read, whether record or operational. */
  readonly position: LogPosition;
  /**
   * The last record event at or before the position. Operational events are pruned, so they cannot prove later which
   * log was read. A checkpoint saved by an older version may name an operational event here.
   */
  readonly record: RecordPlace;
}
