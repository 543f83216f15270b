/** Retries reads during a short outage. */
import pRetry from 'p-retry';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { failureOf, refusalOf } from './failures.ts';

const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 500;

/**
 * Calls `run` until it succeeds, for `spanMs` at most while EventStoreDB cannot be reached. Throws `log-unavailable`
 * after that time, and at once when the server refuses. Throws any other error as it is. `run` must be safe to repeat.
 */
export async function retryRepeatable<T>(spanMs: number, run: () => Promise<T>): Promise<T> {
  try {
    return await pRetry(run, {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: RETRY_DELAY_MS_MIN,
      maxTimeout: RETRY_DELAY_MS_MAX,
      maxRetryTime: spanMs,
      shouldRetry: ({ error }) => failureOf(error) === 'outage',
    });
  } catch (error) {
    switch (failureOf(error)) {
      case 'other':
        throw error;
      case 'outage':
        throw new EventStoreError('log-unavailable', 'EventStoreDB cannot be reached', { cause: error });
      case 'refused':
        throw new EventStoreError('log-unavailable', refusalOf(error), { cause: error });
    }
  }
}
