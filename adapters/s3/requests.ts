/**
 * Sends one operation to a bucket, again where a repeat is safe, and turns its errors into failures.
 *
 * Must stay true: only operations that may run twice are repeated; the waits between attempts are random, so that many
 * nodes do not come back at once.
 */
import pRetry from 'p-retry';
import { S3_RETRY_SPAN_MS } from '../../core/kernel/limits.ts';
import { failureOf, isPassing } from './failures.ts';

const RETRIES = 4;
const RETRY_DELAY_MS_MIN = 100;
const RETRY_DELAY_MS_MAX = 3_000;

/** Runs the operation once. Rejects with an `S3Failure`. */
export async function once<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw failureOf(operation, error);
  }
}

/** Runs the operation until it ends, or fails in a way that another attempt does not cure. */
export function repeatable<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
  return pRetry(() => once(operation, run), {
    retries: RETRIES,
    minTimeout: RETRY_DELAY_MS_MIN,
    maxTimeout: RETRY_DELAY_MS_MAX,
    randomize: true,
    maxRetryTime: S3_RETRY_SPAN_MS,
    shouldRetry: ({ error }) => isPassing(error),
  });
}
