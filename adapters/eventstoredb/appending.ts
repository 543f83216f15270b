/**
 * Appends to EventStoreDB, retried until their outcome is known or their time is over (append-attempt.ts is one try).
 *
 * Invariants:
 * - at most `CONCURRENT_APPENDS_MAX` appends are with the client at a time, and at most `PENDING_APPENDS_MAX` wait;
 * - `append-outcome-unknown` is thrown whenever an attempt may have landed, and in no other case.
 */
import pRetry from 'p-retry';
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../core/kernel/limits.ts';
import { checkAppend } from '../../core/ports/append-check.ts';
import { type AppendRequest, type AppendResult, EventStoreError } from '../../core/ports/event-store.ts';
import {
  type AppendAttemptOptions,
  AppendAttempts,
  appendFailure,
  type PendingAppend,
  tooLarge,
} from './append-attempt.ts';
import { type ProposedEvent, toProposal } from './event-form.ts';
import { failureOf } from './failures.ts';

/**
 * The client's stream of appends holds 16 messages and queues the rest. An error of the stream rejects the queued ones
 * where nobody can catch it, which ends the process. So at most this many appends are with the client. Internal:
 * further appends wait.
 */
const CONCURRENT_APPENDS_MAX = 15;
/**
 * With more than this waiting, the server is too slow for its callers: a longer queue would only use up memory.
 * Internal: a node has fewer connections, with one request under way in each.
 */
const PENDING_APPENDS_MAX = 10_000;
/** The pauses between attempts. Internal: it is the pace of attempts. */
const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 1_000;

export interface AppenderOptions extends AppendAttemptOptions {
  /** How long an append is retried before it fails. */
  readonly retrySpanMs: number;
  /** The last position of the log that this process knows of. */
  readonly knownPosition: () => LogPosition;
  readonly notePosition: (position: LogPosition) => void;
}

export class Appender {
  readonly #options: AppenderOptions;
  readonly #attempts: AppendAttempts;
  readonly #limitConcurrency = createConcurrencyLimit(CONCURRENT_APPENDS_MAX);
  readonly #pending = new Set<Promise<unknown>>();
  #closed = false;

  constructor(options: AppenderOptions) {
    this.#options = options;
    this.#attempts = new AppendAttempts(options);
  }

  /** See `EventStore.append` (core/ports/event-store.ts). */
  async append(request: AppendRequest): Promise<AppendResult> {
    const { dataTexts } = checkAppend(request);
    if (this.#closed) throw new EventStoreError('log-unavailable', 'The event log was closed');
    if (this.#pending.size >= PENDING_APPENDS_MAX) {
      throw new EventStoreError('log-unavailable', `${this.#pending.size} appends are waiting already`);
    }
    const result = this.#retryUntilKnown({
      request,
      proposed: proposedEvents(request, dataTexts),
      knownBefore: this.#options.knownPosition(),
      deadlineMs: performance.now() + this.#options.retrySpanMs,
      outcomeUnknown: false,
    });
    this.#pending.add(result);
    const remove = (): boolean => this.#pending.delete(result);
    result.then(remove, remove);
    return result;
  }

  /** Refuses new appends and resolves when all pending ones are settled. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#pending);
  }

  async #retryUntilKnown(append: PendingAppend): Promise<AppendResult> {
    try {
      const result = await pRetry(() => this.#limitConcurrency(() => this.#attempts.attempt(append)), {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: RETRY_DELAY_MS_MIN,
        maxTimeout: RETRY_DELAY_MS_MAX,
        maxRetryTime: this.#options.retrySpanMs,
        shouldRetry: ({ error }) => failureOf(error) === 'outage',
      });
      if (result.outcome === 'appended') this.#options.notePosition(result.position);
      return result;
    } catch (error) {
      if (failureOf(error) === 'other') throw error;
      throw appendFailure(append, error);
    }
  }
}

/** The events in the client's form. Throws `append-too-large` by EventStoreDB's own count of bytes. */
function proposedEvents(request: AppendRequest, dataTexts: readonly string[]): readonly ProposedEvent[] {
  const count = request.events.length;
  const proposals = request.events.map((event, index) => toProposal(event, dataTexts[index] ?? '', { index, count }));
  const storedSize = proposals.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
  if (storedSize > APPEND_SIZE_BYTES_MAX) throw tooLarge(`An append of ${storedSize} bytes in EventStoreDB`);
  return proposals.map(({ proposed }) => proposed);
}
