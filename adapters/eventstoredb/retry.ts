/** Reads that ride out a short outage. */
import pRetry from 'p-retry';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { failureOf } from './failures.ts';

const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 500;

/**
 * Runs it again while EventStoreDB cannot be reached, for a span at most, then throws `log-unavailable`; so it does
 * for a refusal, at once. Any other failure is thrown as it is. Only for what may run twice.
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
        throw new EventStoreError('log-unavailable', 'EventStoreDB refuses to answer', { cause: error });
    }
  }
}
