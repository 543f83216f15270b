/** Retries statements through a short outage, such as a restart of PostgreSQL, which takes about a second. */
import pRetry from 'p-retry';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { failureOf } from './failures.ts';
import { reportingOutage, unavailable } from './outages.ts';

/** The pauses between attempts. Internal: it is the pace of attempts. */
const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 500;

/**
 * Retries `run` for at most the span while the connection is lost or the server rolls the transaction back; then throws
 * `log-unavailable`. Throws any other failure unchanged. Only for operations that may run twice: reads and idempotent
 * writes.
 */
export async function retryRepeatable<T>(spanMs: number, run: () => Promise<T>): Promise<T> {
  const began = performance.now();
  try {
    // Without the machinery below, which costs as much as a short statement: nearly all succeed the first time.
    return await run();
  } catch (error) {
    if (failureOf(error) === 'other') throw error;
  }
  return reportingOutage(unavailable(EventStoreError, 'log-unavailable'), () =>
    pRetry(run, {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: RETRY_DELAY_MS_MIN,
      maxTimeout: RETRY_DELAY_MS_MAX,
      maxRetryTime: Math.max(0, spanMs - (performance.now() - began)),
      shouldRetry: ({ error }) => failureOf(error) !== 'other',
    }),
  );
}
