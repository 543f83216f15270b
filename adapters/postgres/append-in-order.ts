/**
 * Sends many appends of one caller in the caller's order.
 *
 * Invariants: a batch is sent only after the batch before it was answered. A batch whose answer was lost is sent
 * again, and append_events recognises the events it already holds. So after a failure only appends at the end of the
 * list are missing.
 */
import type pg from 'pg';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { checkAppend } from '../../core/ports/append-check.ts';
import { type AppendRequest, type AppendResult, EventStoreError } from '../../core/ports/event-store.ts';
import type { Lease } from '../../core/ports/read-leases.ts';
import { type Appender, callAppendEvents, type Outcomes, type PreparedAppend } from './append-call.ts';
import { retryRepeatable } from './retry.ts';

/** The appends of one batch, and the bytes of their events. Internal: the rest is in further batches. */
const BATCH_APPENDS_MAX = 256;
const BATCH_SIZE_BYTES_MAX = 4 * 1024 * 1024;

export interface OrderedAppendOptions {
  readonly pool: pg.Pool;
  /** How long a batch is retried while PostgreSQL is unreachable. */
  readonly retrySpanMs: number;
  readonly appender: Appender;
  /** Called with the position of a batch's last append, and with the read leases at its commit. */
  readonly onAppended: (position: LogPosition, leases: readonly Lease[]) => void;
  /** Called with that position, so that this node's subscriptions need not wait for a notification. */
  readonly onAnswered: (position: LogPosition) => void;
}

/** Returns one result for each append, up to the end of the batch with the first conflict. Throws `EventStoreError`. */
export async function appendBatches(
  { pool, retrySpanMs, appender, onAppended, onAnswered }: OrderedAppendOptions,
  requests: readonly AppendRequest[],
): Promise<readonly AppendResult[]> {
  const results: AppendResult[] = [];
  for (const batch of splitIntoBatches(requests)) {
    const { outcomes, leases } = await retryRepeatable(retrySpanMs, () => send(pool, appender, batch));
    let reached = LOG_START;
    for (const outcome of outcomes) {
      if (outcome instanceof EventStoreError) throw outcome;
      results.push(outcome);
      if (outcome.outcome === 'appended') reached = outcome.position;
    }
    if (reached > LOG_START) {
      onAppended(reached, leases);
      onAnswered(reached);
    }
    if (outcomes.some((outcome) => 'outcome' in outcome && outcome.outcome === 'conflict')) break;
  }
  return results;
}

function splitIntoBatches(requests: readonly AppendRequest[]): readonly (readonly PreparedAppend[])[] {
  const batches: PreparedAppend[][] = [];
  let batchBytes = 0;
  for (const request of requests) {
    const { dataTexts, sizeBytes } = checkAppend(request);
    const batch = batches.at(-1);
    batchBytes += sizeBytes;
    if (batch !== undefined && batch.length < BATCH_APPENDS_MAX && batchBytes <= BATCH_SIZE_BYTES_MAX) {
      batch.push({ request, dataTexts });
    } else {
      batches.push([{ request, dataTexts }]);
      batchBytes = sizeBytes;
    }
  }
  return batches;
}

async function send(pool: pg.Pool, appender: Appender, batch: readonly PreparedAppend[]): Promise<Outcomes> {
  const client = await pool.connect();
  try {
    const outcomes = await callAppendEvents(client, appender, batch);
    client.release();
    return outcomes;
  } catch (error) {
    client.release(true);
    throw error;
  }
}
