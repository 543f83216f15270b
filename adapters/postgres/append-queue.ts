/**
 * This node's appends, gathered: while one batch is with the server, the next one fills.
 *
 * Must stay true: an append is answered once; one that was sent on a connection that was lost is sent again with
 * the same event ids, which the server recognises; and `append-outcome-unknown` is said only of such a one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { Log } from '../../core/ports/log.ts';
import { checkAppend } from '../../core/ports/append-check.ts';
import { type AppendRequest, type AppendResult, EventStoreError } from '../../core/ports/event-store.ts';
import { callAppendEvents, type PreparedAppend } from './append-call.ts';
import { failureOf } from './failures.ts';

const BATCH_APPENDS_MAX = 256;
const BATCH_SIZE_BYTES_MAX = 4 * 1024 * 1024;
/** Beyond this the server is too slow for its callers; more waiting would only use up memory. */
const WAITING_APPENDS_MAX = 10_000;
const WAITING_SIZE_BYTES_MAX = 256 * 1024 * 1024;
const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 1_000;

export interface AppendQueueOptions {
  readonly pool: pg.Pool;
  readonly log: Log;
  /** How long an append is retried before its caller is told. */
  readonly retrySpanMs: number;
  /** The log reaches to a position: subscriptions of this node need not wait for the server to say so. */
  readonly onAppended: (position: LogPosition) => void;
}

export interface AppendQueue {
  append(request: AppendRequest): Promise<AppendResult>;
  /** Refuses new appends and resolves when those that wait were answered. */
  close(): Promise<void>;
}

interface Waiting extends PreparedAppend {
  readonly sizeBytes: number;
  /** By performance.now(). */
  readonly giveUpMs: number;
  /** It was sent at least once, and neither an answer nor a clean refusal came. */
  outcomeUnknown: boolean;
  readonly settle: (outcome: AppendResult | EventStoreError) => void;
}

export function createAppendQueue({ pool, log, retrySpanMs, onAppended }: AppendQueueOptions): AppendQueue {
  const waiting: Waiting[] = [];
  let waitingBytes = 0;
  let flushing: Promise<void> | null = null;
  let closed = false;

  function append(request: AppendRequest): Promise<AppendResult> {
    const { dataTexts, sizeBytes } = checkAppend(request);
    if (closed) throw new EventStoreError('log-unavailable', 'The event log was closed');
    if (waiting.length >= WAITING_APPENDS_MAX || waitingBytes + sizeBytes > WAITING_SIZE_BYTES_MAX) {
      throw new EventStoreError('log-unavailable', `${waiting.length} appends are waiting already`);
    }
    return new Promise((resolve, reject) => {
      const settle = (outcome: AppendResult | EventStoreError) =>
        outcome instanceof EventStoreError ? reject(outcome) : resolve(outcome);
      const giveUpMs = performance.now() + retrySpanMs;
      waiting.push({ request, dataTexts, sizeBytes, giveUpMs, outcomeUnknown: false, settle });
      waitingBytes += sizeBytes;
      flushing ??= flush();
    });
  }

  async function flush(): Promise<void> {
    // What callers of this same moment append goes into one batch.
    await Promise.resolve();
    let delayMs = RETRY_DELAY_MS_MIN;
    while (waiting.length > 0) {
      const batch = takeBatch();
      const failure = await send(batch);
      if (failure === null) {
        delayMs = RETRY_DELAY_MS_MIN;
        continue;
      }
      retryLater(batch, failure);
      await sleep(delayMs);
      delayMs = Math.min(delayMs * 2, RETRY_DELAY_MS_MAX);
    }
    // In the same step as the last look at the queue: an append that comes next starts a new flush.
    flushing = null;
  }

  function takeBatch(): Waiting[] {
    let sizeBytes = 0;
    let count = 0;
    for (const entry of waiting) {
      sizeBytes += entry.sizeBytes;
      if (count === BATCH_APPENDS_MAX || (count > 0 && sizeBytes > BATCH_SIZE_BYTES_MAX)) break;
      count += 1;
    }
    const batch = waiting.splice(0, count);
    for (const entry of batch) waitingBytes -= entry.sizeBytes;
    return batch;
  }

  /** Sends a batch and answers it; returns the failure when it is to be sent again. */
  async function send(batch: readonly Waiting[]): Promise<unknown> {
    let client: pg.PoolClient | null = null;
    try {
      client = await pool.connect();
      const outcomes = await callAppendEvents(client, batch);
      client.release();
      for (const [index, entry] of batch.entries()) {
        entry.settle(outcomes[index] ?? new EventStoreError('append-outcome-unknown', 'The log gave no outcome'));
      }
      const reached = outcomes.reduce((last, outcome) => {
        return 'position' in outcome && outcome.position > last ? outcome.position : last;
      }, LOG_START);
      if (reached > LOG_START) onAppended(reached);
      return null;
    } catch (error) {
      const failure = failureOf(error);
      client?.release(true);
      const refused = error instanceof pg.DatabaseError && failure !== 'connection-lost';
      if (client !== null && !refused) for (const entry of batch) entry.outcomeUnknown = true;
      if (failure !== 'other') return error;
      await sendApart(batch, error);
      return null;
    }
  }

  /** The server refused a statement: finds whose fault it is, so that the others do not suffer for it. */
  async function sendApart(batch: readonly Waiting[], error: unknown): Promise<void> {
    const [only] = batch;
    if (only !== undefined && batch.length === 1) {
      log.error({ err: error, stream: only.request.stream }, 'PostgreSQL refused an append');
      only.settle(failed(only, error));
      return;
    }
    for (const entry of batch) {
      const failure = await send([entry]);
      if (failure !== null) retryLater([entry], failure);
    }
  }

  /** Puts appends back in front, in their order, but for those whose time is over. */
  function retryLater(batch: readonly Waiting[], failure: unknown): void {
    const now = performance.now();
    for (const entry of batch.toReversed()) {
      if (now < entry.giveUpMs) {
        waiting.unshift(entry);
        waitingBytes += entry.sizeBytes;
        continue;
      }
      entry.settle(failed(entry, failure));
    }
  }

  return {
    append: async (request) => append(request),
    close: async () => {
      closed = true;
      await flushing;
    },
  };
}

function failed(entry: Waiting, cause: unknown): EventStoreError {
  const { stream } = entry.request;
  return entry.outcomeUnknown
    ? new EventStoreError('append-outcome-unknown', `An append to ${stream} got no answer`, { cause })
    : new EventStoreError('log-unavailable', `PostgreSQL did not take an append to ${stream}`, { cause });
}
