/** The queries that read the event log. Each is one statement, served from the indexes of `events`. */
import type pg from 'pg';
import { LOG_START, type LogPosition, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import type { EventId } from '../../core/kernel/ids.ts';
import type { ReadStreamOptions } from '../../core/ports/event-store.ts';
import { type EventRow, toRecordedEvent } from './event-rows.ts';

const COLUMNS = `position, stream, revision, event_id, type, version, account_id, occurred_at,
  actor_kind, actor_id, request_id, source_address_ref, causation_id, data`;

/** Positions that one look of a subscription passes over at most, with a filter and without. */
const WINDOW_EVENTS_MAX = 1_000;
const FILTERED_WINDOW_EVENTS_MAX = 10_000;
/** A look holds this much data at most, or one event. */
const WINDOW_SIZE_BYTES_MAX = 16 * 1024 * 1024;

/** Where a reader stands: the last event it has passed, whose id is null until it was seen. */
export interface Anchor {
  readonly position: LogPosition;
  readonly id: EventId | null;
}

export interface Window {
  readonly events: readonly RecordedEvent[];
  /** The last event passed over, delivered or not. */
  readonly end: Anchor;
  /** False when there may be more right behind it. */
  readonly reachedEnd: boolean;
  /** The log no longer holds the event the reader stands at. */
  readonly diverged: boolean;
}

interface WindowColumns {
  readonly wanted: boolean;
  readonly is_last: boolean;
  readonly number: string;
}

/** Rows from $1 on, $3 at most, of the categories $2; the anchor and the last row are given without their data. */
const READ_WINDOW = `
  SELECT ${COLUMNS.replace('data', "CASE WHEN wanted THEN data ELSE '' END AS data")}, wanted, is_last, number
  FROM (
    SELECT *,
      coalesce(sum(octet_length(data)) FILTER (WHERE wanted) OVER ahead, 0) AS bytes,
      row_number() OVER ahead AS number,
      lead(position) OVER ahead IS NULL AS is_last
    FROM (
      SELECT *, position > $1 AND ($2::text[] IS NULL OR split_part(stream, '-', 1) = ANY ($2)) AS wanted
      FROM events WHERE position >= $1 ORDER BY position LIMIT $3
    ) AS judged
    WINDOW ahead AS (ORDER BY position)
  ) AS passed
  WHERE (bytes - CASE WHEN wanted THEN octet_length(data) ELSE 0 END) < $4
    AND (wanted OR is_last OR position = $1)
  ORDER BY position`;

export interface LogReader {
  readStream(stream: StreamName, options: ReadStreamOptions): Promise<readonly RecordedEvent[]>;
  readAll(after: LogPosition, limit: number): Promise<readonly RecordedEvent[]>;
  readWindow(from: Anchor, categories: readonly string[] | null): Promise<Window>;
}

export function createLogReader(pool: pg.Pool): LogReader {
  return {
    readStream: async (stream, { direction, from, limit }) => {
      const [compare, order] = direction === 'forwards' ? ['>=', 'ASC'] : ['<=', 'DESC'];
      const { rows } = await pool.query<EventRow>(
        `SELECT ${COLUMNS} FROM events WHERE stream = $1 AND ($2::integer IS NULL OR revision ${compare} $2)
         ORDER BY revision ${order} LIMIT $3`,
        [stream, from ?? null, limit],
      );
      return rows.map(toRecordedEvent);
    },
    readAll: async (after, limit) => {
      const { rows } = await pool.query<EventRow>(
        `SELECT ${COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2`,
        [after, limit],
      );
      return rows.map(toRecordedEvent);
    },
    readWindow: (from, categories) => readWindow(pool, from, categories),
  };
}

/** The position of the last event. */
export async function readHead(pool: pg.Pool): Promise<LogPosition> {
  const { rows } = await pool.query<{ head: string }>(
    'SELECT position AS head FROM events ORDER BY position DESC LIMIT 1',
  );
  const [last] = rows;
  return last === undefined ? LOG_START : (BigInt(last.head) as LogPosition);
}

/**
 * The window starts with the reader's own anchor, without data, and ends with the last event it passes over, so that
 * both ends are known by id whatever the filter leaves out.
 */
async function readWindow(pool: pg.Pool, from: Anchor, categories: readonly string[] | null): Promise<Window> {
  const eventsMax = categories === null ? WINDOW_EVENTS_MAX : FILTERED_WINDOW_EVENTS_MAX;
  // One more for the anchor, which the start of the log has not.
  const rowsMax = eventsMax + (from.position > LOG_START ? 1 : 0);
  // Named, since every subscription asks it after every append: planning it anew costs more than it does.
  const { rows } = await pool.query<EventRow & WindowColumns>({
    name: 'log-read-window',
    text: READ_WINDOW,
    values: [from.position, categories, rowsMax, WINDOW_SIZE_BYTES_MAX],
  });
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined) {
    // Nothing at or beyond the position: a log that lost its tail, or an empty one that is read from its start.
    return { events: [], end: from, reachedEnd: true, diverged: from.position > LOG_START };
  }
  const standsHere = BigInt(first.position) === from.position;
  return {
    events: rows.filter((row) => row.wanted).map(toRecordedEvent),
    end: { position: BigInt(last.position) as LogPosition, id: last.event_id as EventId },
    reachedEnd: last.is_last && Number(last.number) < rowsMax,
    diverged: standsHere && from.id !== null && first.event_id !== from.id,
  };
}
