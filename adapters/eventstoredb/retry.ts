/** Retries reads during a short outage. */
import pRetry from 'p-retry';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { failureOf, refusalOf } from './failures.ts';

/** What reading the log needs the right to do. */
export const READING = 'read $all and its streams';

/** The pauses between attempts. Internal: it is the pace of attempts. */
const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 500;

/**
 * Calls `run` until it succeeds, for `spanMs` at most while EventStoreDB cannot be reached. Throws `log-unavailable`
 * after that time, and immediately when the server refuses. Throws any other error as it is. `run` must be safe to
 * repeat; `right` is what it needs the right to do.
 */
export async function retryRepeatable<T>(spanMs: number, right: string, run: () => Promise<T>): Promise<T> {
  try {
    return await pRetry(run, {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: RETRY_DELAY_MS_MIN,
      maxTimeout: RETRY_DELAY_MS_MAX,
      maxRetryTime: spanMs,
      shouldRetry: ({ error }) => failureOf(error) === 'outage',
    });
  } catch (error) {
    throw unavailable(error, right);
  }
}

/** The port's error for what ended a call; the error itself when it is not EventStoreDB's. */
export function unavailable(error: unknown, right: string): unknown {
  switch (failureOf(error)) {
    case 'other':
      return error;
    case 'outage':
      return new EventStoreError('log-unavailable', 'EventStoreDB cannot be reached', { cause: error });
    case 'refused': {
      const why = refusalOf(error, right) ?? 'EventStoreDB refuses to answer';
      return new EventStoreError('log-unavailable', why, { cause: error });
    }
  }
}
