/**
 * Sends one operation to a bucket, again where a repeat is safe, and turns its errors into failures.
 *
 * Invariants: only operations that may run twice are repeated; the waits between attempts are random, so that many
 * nodes do not come back at the same moment.
 */
import type { S3Client } from '@aws-sdk/client-s3';
import pRetry from 'p-retry';
import { failureOf, isDenied, isPassing, S3Failure } from './failures.ts';

/**
 * After this long no request to a bucket is repeated. It is shorter than the wait for an answer: whoever pushes has
 * then waited for that long in vain, and would wait as long again.
 */
export const S3_RETRY_SPAN_MS = 30_000;

const RETRIES = 4;
/** How much longer than the first wait the longest may be. Internal: it is the pace of attempts. */
const RETRY_DELAY_GROWTH_MAX = 30;

export interface Sender {
  readonly client: S3Client;
  /**
   * Drops credentials that the bucket refused, so that the next request fetches others; null if there are no others.
   */
  readonly renew: (() => void) | null;
  /** The wait before the first repeat. */
  readonly retryMs: number;
}

/** Runs the operation until it ends, or fails in a way that another attempt does not cure. Rejects with `S3Failure`. */
export function repeatable<Result>(
  { client, renew, retryMs }: Sender,
  operation: string,
  run: (client: S3Client) => Promise<Result>,
): Promise<Result> {
  let isRenewed = renew === null;
  const once = async (): Promise<Result> => {
    try {
      return await run(client);
    } catch (error) {
      throw failureOf(operation, error);
    }
  };
  return pRetry(once, {
    retries: RETRIES,
    minTimeout: retryMs,
    maxTimeout: retryMs * RETRY_DELAY_GROWTH_MAX,
    randomize: true,
    maxRetryTime: S3_RETRY_SPAN_MS,
    shouldRetry: ({ error }) => {
      if (isPassing(error)) return true;
      if (isRenewed || !isRefusal(error)) return false;
      isRenewed = true;
      renew?.();
      return true;
    },
  });
}

/** The answer to HEAD does not tell refused credentials from a denied operation. */
function isRefusal(error: Error): boolean {
  return isDenied(error) || (error instanceof S3Failure && error.code === 'credentials-refused');
}
