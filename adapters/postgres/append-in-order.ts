/**
 * Many appends by one caller, in the order given.
 *
 * Must stay true: a batch is sent only after the one before was answered, and again after a lost answer, which
 * append_events recognises; so what is missing after a failure is missing from the end.
 */
import type pg from 'pg';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { checkAppend } from '../../core/ports/append-check.ts';
import { type AppendRequest, type AppendResult, EventStoreError } from '../../core/ports/event-store.ts';
import { callAppendEvents, type PreparedAppend } from './append-call.ts';
import { retryRepeatable } from './retry.ts';

const BATCH_APPENDS_MAX = 256;
const BATCH_SIZE_BYTES_MAX = 4 * 1024 * 1024;

export interface OrderedAppendOptions {
  readonly pool: pg.Pool;
  /** How long a batch is retried while PostgreSQL is away. */
  readonly retrySpanMs: number;
  readonly onAppended: (position: LogPosition) => void;
}

/** One result for each append up to the end of the batch that holds the first conflict. Throws `EventStoreError`. */
export async function appendBatches(
  { pool, retrySpanMs, onAppended }: OrderedAppendOptions,
  requests: readonly AppendRequest[],
): Promise<readonly AppendResult[]> {
  const results: AppendResult[] = [];
  for (const batch of inBatches(requests)) {
    const outcomes = await retryRepeatable(retrySpanMs, () => send(pool, batch));
    let reached = LOG_START;
    for (const outcome of outcomes) {
      if (outcome instanceof EventStoreError) throw outcome;
      results.push(outcome);
      if (outcome.outcome === 'appended') reached = outcome.position;
    }
    if (reached > LOG_START) onAppended(reached);
    if (outcomes.some((outcome) => 'outcome' in outcome && outcome.outcome === 'conflict')) break;
  }
  return results;
}

function inBatches(requests: readonly AppendRequest[]): readonly (readonly PreparedAppend[])[] {
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

async function send(
  pool: pg.Pool,
  batch: readonly PreparedAppend[],
): Promise<readonly (AppendResult | EventStoreError)[]> {
  const client = await pool.connect();
  try {
    const outcomes = await callAppendEvents(client, batch);
    client.release();
    return outcomes;
  } catch (error) {
    client.release(true);
    throw error;
  }
}
