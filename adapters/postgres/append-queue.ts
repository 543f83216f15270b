/**
 * Sends this node's appends in batches: while PostgreSQL works on one batch, new appends collect in the next.
 *
 * Invariants: each append is answered exactly once. An append whose answer was lost is sent again with the same
 * event ids, which append_events recognises. Only such an append can fail with `append-outcome-unknown`.
 * The deadline of an append is asked after the connection is there, and after the clock was read that PostgreSQL
 * compares with its own: what this process or the network delays afterwards, PostgreSQL refuses (append-call.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { backoff } from '../../core/kernel/backoff.ts';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { checkAppend, tooLate } from '../../core/ports/append-check.ts';
import { type AppendRequest, type AppendResult, EventStoreError } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Lease } from '../../core/ports/read-leases.ts';
import { type Appender, type ClockRefusal, callAppendEventsInTime, type PreparedAppend } from './append-call.ts';
import { type ClockWatch, secondsAhead } from './clock-difference.ts';
import { failureOf } from './failures.ts';
import type { AppendedEvents, OwnTail } from './own-tail.ts';

/** The appends of one batch, and the bytes of their events. Internal: the rest is in further batches. */
const BATCH_APPENDS_MAX = 256;
const BATCH_SIZE_BYTES_MAX = 4 * 1024 * 1024;
/** Beyond this PostgreSQL is too slow for its callers; a longer queue would only use up memory. */
export const QUEUED_APPENDS_MAX = 10_000;
export const QUEUED_SIZE_BYTES_MAX = 256 * 1024 * 1024;
const RETRY_PAUSE_FIRST_MS = 20;
const RETRY_PAUSE_LAST_MS = 1_000;

export interface AppendQueueOptions {
  readonly pool: Pick<pg.Pool, 'connect'>;
  readonly log: Log;
  readonly watch: ClockWatch;
  /** How long an append is retried before it throws. */
  readonly retrySpanMs: number;
  readonly appender: Appender;
  /** Called before a batch's appends are answered, with its last position and the read leases at its commit. */
  readonly onAppended: (position: LogPosition, leases: readonly Lease[]) => void;
  /**
   * Called with that position when the callers have gone on with their answers, so that this node's subscriptions need
   * not wait for a notification.
   */
  readonly onAnswered: (position: LogPosition) => void;
  /** Takes the events that a batch appended, before `onAppended`. */
  readonly own: Pick<OwnTail, 'add'>;
}

export interface AppendQueue {
  append(request: AppendRequest): Promise<AppendResult>;
  /** Whether appends are under way: they may be committed, and not answered yet. */
  isSending(): boolean;
  /** Refuses new appends; resolves when every queued append is answered. */
  close(): Promise<void>;
}

interface QueuedAppend extends PreparedAppend {
  readonly sizeBytes: number;
  /** When retries end, on the clock of performance.now(). */
  readonly retriedUntilMs: number;
  /** True when at least one attempt got neither an answer nor an error from PostgreSQL that rules out a commit. */
  outcomeUnknown: boolean;
  readonly settle: (outcome: AppendResult | EventStoreError) => void;
}

export function createAppendQueue(options: AppendQueueOptions): AppendQueue {
  return new BatchedAppends(options);
}

class BatchedAppends implements AppendQueue {
  readonly #options: AppendQueueOptions;
  readonly #queue: QueuedAppend[] = [];
  #queuedBytes = 0;
  #flushing: Promise<void> | null = null;
  #closed = false;

  constructor(options: AppendQueueOptions) {
    this.#options = options;
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    const { dataTexts, sizeBytes } = checkAppend(request);
    if (this.#closed) throw new EventStoreError('log-unavailable', 'The event log was closed');
    if (this.#queue.length >= QUEUED_APPENDS_MAX || this.#queuedBytes + sizeBytes > QUEUED_SIZE_BYTES_MAX) {
      throw new EventStoreError('log-unavailable', `${this.#queue.length} appends are queued already`);
    }
    return new Promise((resolve, reject) => {
      const settle = (outcome: AppendResult | EventStoreError) =>
        outcome instanceof EventStoreError ? reject(outcome) : resolve(outcome);
      const retriedUntilMs = performance.now() + this.#options.retrySpanMs;
      this.#queue.push({ request, dataTexts, sizeBytes, retriedUntilMs, outcomeUnknown: false, settle });
      this.#queuedBytes += sizeBytes;
      this.#flushing ??= this.#flush();
    });
  }

  isSending(): boolean {
    return this.#flushing !== null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    // Appends that callers start in the same tick go into one batch.
    await Promise.resolve();
    const pauses = backoff(RETRY_PAUSE_FIRST_MS, RETRY_PAUSE_LAST_MS);
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch();
      if (await this.#send(batch)) pauses.reset();
      else await sleep(pauses.next());
    }
    // Nothing may be awaited between the last check of the queue and this line: the next append must start a new flush.
    this.#flushing = null;
  }

  #takeBatch(): QueuedAppend[] {
    let sizeBytes = 0;
    let count = 0;
    for (const entry of this.#queue) {
      sizeBytes += entry.sizeBytes;
      if (count === BATCH_APPENDS_MAX || (count > 0 && sizeBytes > BATCH_SIZE_BYTES_MAX)) break;
      count += 1;
    }
    const batch = this.#queue.splice(0, count);
    for (const entry of batch) this.#queuedBytes -= entry.sizeBytes;
    return batch;
  }

  /** Sends a batch and answers its appends. Returns false if it must be sent again: it is in the queue then. */
  async #send(taken: readonly QueuedAppend[]): Promise<boolean> {
    let batch = taken;
    let client: pg.PoolClient | null = null;
    try {
      client = await this.#options.pool.connect();
      const { watch, appender } = this.#options;
      const reading = watch.read();
      batch = inTime(taken);
      if (batch.length === 0) {
        client.release();
        return true;
      }
      const answer = await callAppendEventsInTime(client, reading, appender, batch);
      client.release();
      if ('clock' in answer) return this.#refuse(batch, answer);
      const { outcomes, leases } = answer;
      const reached = outcomes.reduce((last, outcome) => {
        return 'position' in outcome && outcome.position > last ? outcome.position : last;
      }, LOG_START);
      this.#options.own.add(batch.flatMap((entry, index) => appendedEvents(entry, outcomes[index]) ?? []));
      if (reached > LOG_START) this.#options.onAppended(reached, leases);
      for (const [index, entry] of batch.entries()) {
        entry.settle(outcomes[index] ?? new EventStoreError('append-outcome-unknown', 'The log returned no outcome'));
      }
      // What the callers do next is run in this turn of the event loop.
      if (reached > LOG_START) setImmediate(this.#options.onAnswered, reached);
      return true;
    } catch (error) {
      const failure = failureOf(error);
      client?.release(true);
      const refused = error instanceof pg.DatabaseError && failure !== 'connection-lost';
      if (client !== null && !refused) for (const entry of batch) entry.outcomeUnknown = true;
      if (failure !== 'other') return this.#requeue(batch, error);
      await this.#sendOneByOne(batch, error);
      return true;
    }
  }

  /** Returns false if the batch must be sent again. */
  #refuse(batch: readonly QueuedAppend[], { clock, difference }: ClockRefusal): boolean {
    const seconds = secondsAhead(difference);
    const [by, than] = [Math.abs(seconds), seconds > 0 ? 'behind' : 'ahead of'];
    const message = `The clock of this machine is ${by} s ${than} PostgreSQL's: nothing is appended until it is set right`;
    if (clock === 'unsure') return this.#requeue(batch, new Error(message));
    const refused = new EventStoreError('clock-differs', message);
    for (const entry of batch) entry.settle(entry.outcomeUnknown ? appendError(entry, refused) : refused);
    return true;
  }

  /** After PostgreSQL refused a batch: sends its appends one by one, so that only the append at fault fails. */
  async #sendOneByOne(batch: readonly QueuedAppend[], error: unknown): Promise<void> {
    const [only] = batch;
    if (only !== undefined && batch.length === 1) {
      this.#options.log.error({ err: error, stream: only.request.stream }, 'PostgreSQL refused an append');
      only.settle(appendError(only, error));
      return;
    }
    for (const entry of batch) await this.#send([entry]);
  }

  /** Puts appends back at the front of the queue, in their order. Those that were retried for long enough fail. */
  #requeue(batch: readonly QueuedAppend[], failure: unknown): false {
    const now = performance.now();
    for (const entry of batch.toReversed()) {
      if (now < entry.retriedUntilMs) {
        this.#queue.unshift(entry);
        this.#queuedBytes += entry.sizeBytes;
        continue;
      }
      entry.settle(appendError(entry, failure));
    }
    return false;
  }
}

/** Returns the appends whose deadline has not passed; the others fail. */
function inTime(batch: readonly QueuedAppend[]): readonly QueuedAppend[] {
  return batch.filter((entry) => {
    const { request, outcomeUnknown, settle } = entry;
    if (request.isTooLate?.() !== true) return true;
    const late = tooLate(request);
    settle(outcomeUnknown ? appendError(entry, late) : late);
    return false;
  });
}

/** The events as the log holds them; null if it did not append them. */
function appendedEvents(
  { request, sizeBytes }: QueuedAppend,
  outcome: AppendResult | EventStoreError | undefined,
): AppendedEvents | null {
  if (outcome === undefined || !('position' in outcome)) return null;
  const { stream, events } = request;
  const before = events.length - 1;
  const recorded = events.map((event, index) => ({
    ...event,
    stream,
    revision: outcome.revision - before + index,
    position: (outcome.position - BigInt(before - index)) as LogPosition,
    appendIndex: index,
    appendCount: events.length,
  }));
  return { events: recorded, sizeBytes };
}

function appendError(entry: QueuedAppend, cause: unknown): EventStoreError {
  const { stream } = entry.request;
  return entry.outcomeUnknown
    ? new EventStoreError('append-outcome-unknown', `An append to ${stream} got no answer`, { cause })
    : new EventStoreError('log-unavailable', `PostgreSQL did not take an append to ${stream}`, { cause });
}
