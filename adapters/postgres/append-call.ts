/**
 * Sends a batch of appends as one call of append_events.
 *
 * Must stay true: the call is one message of the simple query protocol. PostgreSQL runs and commits it only after it
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
import { toNewRow } from './event-rows.ts';

/** An append that passed `checkAppend`. */
export interface PreparedAppend {
  readonly request: AppendRequest;
  readonly dataTexts: readonly string[];
}

/** Returns one outcome for each append, in order. An `EventStoreError` in the list concerns that append only. */
export async function callAppendEvents(
  client: pg.ClientBase,
  appends: readonly PreparedAppend[],
): Promise<readonly (AppendResult | EventStoreError)[]> {
  const batch = JSON.stringify(appends.map(toBatchEntry));
  // pool.ts sets standard_conforming_strings, so only the quote is special in a literal. JSON.stringify escapes NUL.
  const literal = `'${batch.replaceAll("'", "''")}'`;
  const { rows } = await client.query<{ results: string }>(`SELECT append_events(${literal}) AS results`);
  const results: unknown = JSON.parse(rows[0]?.results ?? '[]');
  if (!Array.isArray(results) || results.length !== appends.length) {
    throw new TypeError('append_events returned the wrong number of results');
  }
  return appends.map(({ request }, index) => parseOutcome(request, results[index]));
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
