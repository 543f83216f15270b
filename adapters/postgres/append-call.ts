/**
 * Sends a batch of appends as one call of append_events.
 *
 * Invariants: the call is one message of the simple query protocol. PostgreSQL runs and commits it only after it
 * has received the whole message. In the extended protocol the function would run before the message that commits it,
 * and a client that froze in between would hold the log's lock. The answer is one short row, so PostgreSQL can send it
 * without waiting for the client to read.
 */
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import {
  type AppendRequest,
  type AppendResult,
  EventStoreError,
  type ExpectedRevision,
} from '../../core/ports/event-store.ts';
import type { Lease } from '../../core/ports/read-leases.ts';
import { type ClockDifference, type ClockReading, type ClockVerdict, DATABASE_MS } from './clock-difference.ts';
import { toNewRow } from './event-rows.ts';
import { CLOCK_DIFFERENCE_MS_MAX } from './limits.ts';
import { leasesOf } from './read-leases.ts';

/** An append that passed `checkAppend`. */
export interface PreparedAppend {
  readonly request: AppendRequest;
  readonly dataTexts: readonly string[];
}

/**
 * How this process takes part in read leases: its name in their table. Null: each append waits until all have ended.
 */
export type Appender = string | null;

export interface Outcomes {
  /** One for each append, in order. An `EventStoreError` concerns that append only. */
  readonly outcomes: readonly (AppendResult | EventStoreError)[];
  /** The leases as they stood under the lock of the appends. */
  readonly leases: readonly Lease[];
}

export async function callAppendEvents(
  client: pg.ClientBase,
  appender: Appender,
  appends: readonly PreparedAppend[],
): Promise<Outcomes> {
  const { rows } = await client.query<{ results: string }>(`SELECT ${callOf(appender, appends)} AS results`);
  return parseOutcomes(appender, appends, rows[0]?.results);
}

/** Nothing was appended, since the clocks differ, or since the message was under way for too long to tell. */
export interface ClockRefusal {
  readonly clock: Exclude<ClockVerdict, 'agrees'>;
  readonly difference: ClockDifference;
}

/**
 * Does the same unless this node's clock differs from PostgreSQL's, which decides that in the call that appends: when a
 * message arrives later than `CLOCK_DIFFERENCE_MS_MAX` after the reading, by PostgreSQL's clock, it appends nothing.
 */
export async function callAppendEventsInTime(
  client: pg.ClientBase,
  reading: ClockReading,
  appender: Appender,
  appends: readonly PreparedAppend[],
): Promise<Outcomes | ClockRefusal> {
  const call = callOf(appender, appends);
  const { rows } = await client.query<{ results: string | null; database_ms: number }>(
    `SELECT database_ms, CASE WHEN abs(database_ms - ${reading.sentAtMs}) <= ${CLOCK_DIFFERENCE_MS_MAX}
       THEN ${call} END AS results
     FROM (SELECT ${DATABASE_MS} AS database_ms) AS clock`,
  );
  const [row] = rows;
  if (row === undefined) throw new TypeError('append_events returned no row');
  const { verdict, difference } = reading.answered(row.database_ms);
  if (row.results !== null) return parseOutcomes(appender, appends, row.results);
  return { clock: verdict === 'differs' ? 'differs' : 'unsure', difference };
}

function callOf(appender: Appender, appends: readonly PreparedAppend[]): string {
  const batch = literalOf(JSON.stringify(appends.map(toBatchEntry)));
  return appender === null ? `append_events(${batch})` : `append_events_leased(${batch}, ${literalOf(appender)})`;
}

/** pool.ts sets standard_conforming_strings, so only the quote is special in a literal. JSON.stringify escapes NUL. */
function literalOf(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function parseOutcomes(appender: Appender, appends: readonly PreparedAppend[], text: string | undefined): Outcomes {
  const parsed: unknown = JSON.parse(text ?? '[]');
  const parts: readonly unknown[] = appender !== null && Array.isArray(parsed) ? parsed : [parsed, []];
  const [results, leases, life] = parts;
  if (!Array.isArray(results) || results.length !== appends.length) {
    throw new TypeError('append_events returned the wrong number of results');
  }
  const outcomes = appends.map(({ request }, index) => parseOutcome(request, results[index]));
  return { outcomes, leases: leasesOf(leases, life) };
}

function toBatchEntry({ request, dataTexts }: PreparedAppend) {
  const { stream, expected, events, guards = [] } = request;
  return {
    stream,
    expected: revisionNumber(expected),
    ...(guards.length === 0
      ? {}
      : { guards: guards.map((guard) => ({ stream: guard.stream, revision: revisionNumber(guard.revision) })) }),
    events: events.map((event, index) => toNewRow(event, dataTexts[index] ?? '')),
  };
}

function parseOutcome(request: AppendRequest, line: unknown): AppendResult | EventStoreError {
  const fields: readonly unknown[] = Array.isArray(line) ? line : [];
  // The lines are described in migrations/008-appends.ts.
  const [outcome, number, detail] = fields;
  if (outcome === 'appended' && typeof number === 'number' && typeof detail === 'string') {
    return { outcome, revision: number, position: BigInt(detail) as LogPosition };
  }
  if (outcome === 'conflict' && typeof number === 'number' && typeof detail === 'number') {
    const stream = number === 0 ? request.stream : request.guards?.[number - 1]?.stream;
    if (stream !== undefined) return { outcome, stream, actual: detail === -1 ? 'none' : detail };
  }
  if (outcome === 'reused') {
    return new EventStoreError('invalid-event', `An append to ${request.stream} reuses the id of another event`);
  }
  throw new TypeError(`append_events returned an unknown line: ${JSON.stringify(line)}`);
}

function revisionNumber(revision: ExpectedRevision): number {
  return revision === 'none' ? -1 : revision;
}
