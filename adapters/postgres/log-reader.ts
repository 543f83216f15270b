/** The queries that read the event log. Each is one statement that PostgreSQL answers from the indexes of `events`. */
import type pg from 'pg';
import {
  LEGACY_OPERATIONAL_CATEGORIES,
  LOG_START,
  type LogPosition,
  type RecordedEvent,
  type StreamName,
} from '../../core/kernel/envelope.ts';
import type { EventId } from '../../core/kernel/ids.ts';
import { missingOfAppend } from '../../core/kernel/whole-appends.ts';
import type { ReadStreamOptions } from '../../core/ports/event-store.ts';
import type { RecordPlace } from '../../core/ports/read-mark.ts';
import { lastRecordOf } from '../../core/runtime/read-mark.ts';
import { type ClockWatch, DATABASE_MS } from './clock-difference.ts';
import { type EventRow, toRecordedEvent } from './event-rows.ts';

const COLUMNS = `position, stream, revision, event_id, type, version, account_id, occurred_at,
  actor_kind, actor_id, request_id, source_address_ref, causation_id, is_record, append_index,
  append_count, data`;

/**
 * How many positions one read of a subscription covers at most: without a filter, and with one. Internal: the rest
 * follows.
 */
const WINDOW_EVENTS_MAX = 1_000;
const FILTERED_WINDOW_EVENTS_MAX = 10_000;
/** One read of a subscription returns at most this much event data, or one larger event. Internal: the rest follows. */
const WINDOW_SIZE_BYTES_MAX = 16 * 1024 * 1024;

/** The last event that a reader has passed; `id` is null until the reader has seen that event. */
export interface Anchor {
  readonly position: LogPosition;
  readonly id: EventId | null;
}

/** What one read of a subscription found after its anchor. */
export interface Window {
  /** The events that pass the filter. */
  readonly events: readonly RecordedEvent[];
  /** The last event that the read covered, whether it passes the filter or not. */
  readonly end: Anchor;
  /** The last record event that the read covered, whether it passes the filter or not; null if there is none. */
  readonly lastRecord: RecordPlace | null;
  /** False when more events may follow. */
  readonly reachedEnd: boolean;
  /** True for what this process appended itself, which is not read from the log: others may have appended behind it. */
  readonly isOwn: boolean;
  /** True when the log ends before the anchor or holds another event at its position. */
  readonly diverged: boolean;
}

interface WindowColumns {
  readonly wanted: boolean;
  readonly is_last: boolean;
  readonly last_record: string | null;
  readonly number: string;
}

const ONCE_OPERATIONAL = LEGACY_OPERATIONAL_CATEGORIES.map((category) => `'${category}'`).join(', ');

/**
 * $1: the anchor's position; $2: the categories, or null for all; $3: how many rows to cover at most; $4: the bound on
 * the bytes of data. Returns the events after the anchor that pass the filter. It also returns the rows of the anchor
 * and of the last event covered, with empty data if they do not pass the filter. Each row carries the position of the
 * last record event up to it.
 */
const READ_WINDOW = `
  SELECT ${COLUMNS.replace('data', "CASE WHEN wanted THEN data ELSE '' END AS data")}, wanted, is_last, number,
    last_record
  FROM (
    SELECT *,
      coalesce(sum(octet_length(data)) FILTER (WHERE wanted) OVER ahead, 0) AS bytes,
      row_number() OVER ahead AS number,
      max(position) FILTER (
        WHERE position > $1 AND coalesce(is_record, split_part(stream, '-', 1) NOT IN (${ONCE_OPERATIONAL}))
      ) OVER ahead AS last_record,
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
  readPositions(positions: readonly LogPosition[]): Promise<readonly RecordedEvent[]>;
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
      const page = rows.map(toRecordedEvent);
      const rest = await readRest(pool, page.at(-1), direction);
      return [...page, ...(direction === 'forwards' ? rest : rest.toReversed())];
    },
    readAll: async (after, limit) => {
      const { rows } = await pool.query<EventRow>(
        `SELECT ${COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2`,
        [after, limit],
      );
      const page = rows.map(toRecordedEvent);
      return [...page, ...(await readRest(pool, page.at(-1), 'forwards'))];
    },
    readPositions: async (positions) => {
      const text = `SELECT ${COLUMNS} FROM events WHERE position = ANY ($1::bigint[])`;
      return (await pool.query<EventRow>(text, [positions])).rows.map(toRecordedEvent);
    },
    readWindow: (from, categories) => readWindow(pool, from, categories),
  };
}

type PlaceRow = Pick<EventRow, 'position' | 'stream' | 'revision' | 'event_id'>;

/** Finds the record event at the position among the rows, or in the log if the filter left it out. */
async function recordPlaceAt(pool: pg.Pool, at: string | null, rows: readonly PlaceRow[]): Promise<RecordPlace | null> {
  if (at === null) return null;
  const row = rows.findLast(({ position }) => position === at) ?? (await readPlace(pool, at));
  if (row === undefined) return null;
  const position = BigInt(row.position) as LogPosition;
  return { position, stream: row.stream as StreamName, revision: row.revision, eventId: row.event_id as EventId };
}

async function readPlace(pool: pg.Pool, at: string): Promise<PlaceRow | undefined> {
  const text = 'SELECT position, stream, revision, event_id FROM events WHERE position = $1';
  const { rows } = await pool.query<PlaceRow>({ name: 'log-read-place', text, values: [at] });
  return rows[0];
}

type Placed = Pick<RecordedEvent, 'stream' | 'revision' | 'appendIndex' | 'appendCount'>;

function placeOf({ stream, revision, append_index, append_count }: EventRow): Placed {
  return { stream: stream as StreamName, revision, appendIndex: append_index, appendCount: append_count };
}

/** Returns the missing events of the append that the page ends in, in log order. One commit wrote them all. */
async function readRest(
  pool: pg.Pool,
  last: Placed | undefined,
  direction: ReadStreamOptions['direction'],
): Promise<readonly RecordedEvent[]> {
  const missing = last === undefined ? 0 : missingOfAppend(last, direction);
  if (last === undefined || missing === 0) return [];
  const [from, to] = direction === 'forwards' ? [1, missing] : [-missing, -1];
  const { rows } = await pool.query<EventRow>(
    `SELECT ${COLUMNS} FROM events WHERE stream = $1 AND revision BETWEEN $2 AND $3 ORDER BY revision`,
    [last.stream, last.revision + from, last.revision + to],
  );
  return rows.map(toRecordedEvent);
}

const READ_HEAD = `
  SELECT (SELECT position FROM events ORDER BY position DESC LIMIT 1) AS head, ${DATABASE_MS} AS database_ms`;

/**
 * Returns the position of the last event, or `LOG_START` when the log is empty. Every request waits for such a read.
 */
export async function readHead(pool: pg.Pool, watch: ClockWatch): Promise<LogPosition> {
  const reading = watch.read();
  const { rows } = await pool.query<{ head: string | null; database_ms: number }>(READ_HEAD);
  const [row] = rows;
  if (row !== undefined) reading.answered(row.database_ms);
  return typeof row?.head === 'string' ? (BigInt(row.head) as LogPosition) : LOG_START;
}

/**
 * The query also returns the anchor's own row and the last row it covers, even if the filter leaves them out, so that
 * the ids of both are known.
 */
async function readWindow(pool: pg.Pool, from: Anchor, categories: readonly string[] | null): Promise<Window> {
  const eventsMax = categories === null ? WINDOW_EVENTS_MAX : FILTERED_WINDOW_EVENTS_MAX;
  // One more row for the anchor; the start of the log has no event.
  const rowsMax = eventsMax + (from.position > LOG_START ? 1 : 0);
  // A named statement is planned once a connection. Every subscription runs it after every append, and planning it
  // costs more than running it.
  const { rows } = await pool.query<EventRow & WindowColumns>({
    name: 'log-read-window',
    text: READ_WINDOW,
    values: [from.position, categories, rowsMax, WINDOW_SIZE_BYTES_MAX],
  });
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined) {
    // No event at or after the position: the log lost its tail, or it is empty and read from its start.
    const diverged = from.position > LOG_START;
    return { events: [], end: from, lastRecord: null, reachedEnd: true, isOwn: false, diverged };
  }
  const anchorFound = BigInt(first.position) === from.position;
  // The bounds on rows and bytes may end the window inside an append.
  const rest = await readRest(pool, placeOf(last), 'forwards');
  const end = rest.at(-1) ?? { position: BigInt(last.position) as LogPosition, id: last.event_id as EventId };
  return {
    events: [...rows.filter((row) => row.wanted).map(toRecordedEvent), ...(last.wanted ? rest : [])],
    end: { position: end.position, id: end.id },
    lastRecord: lastRecordOf(rest) ?? (await recordPlaceAt(pool, last.last_record, rows)),
    reachedEnd: last.is_last && Number(last.number) < rowsMax,
    isOwn: false,
    diverged: anchorFound && from.id !== null && first.event_id !== from.id,
  };
}
