/**
 * Waits for connections that others hold, since PostgreSQL has a fixed number of them.
 *
 * Invariants: only a refusal for want of a connection is waited for; any other failure is thrown as it is.
 */
import pRetry from 'p-retry';
import type pg from 'pg';
import type { Log } from '../../core/ports/log.ts';

/** `too_many_connections`: of the server, a database or a role. */
const TOO_MANY = '53300';
const ASKED_AGAIN_MS = 250;

export class ConnectionsTakenError extends Error {
  override readonly name = 'ConnectionsTakenError';
}

export interface Patience {
  /** On the monotonic clock, `performance.now()`. */
  readonly untilMs: number;
  readonly spanMs: number;
  readonly log: Log;
}

export function patienceOf(spanMs: number, log: Log): Patience {
  return { untilMs: performance.now() + spanMs, spanMs, log };
}

/** Repeats the work while PostgreSQL has no connection for it. Throws `ConnectionsTakenError` after the span. */
export async function whenConnectionsAreFree<Result>(
  { untilMs, spanMs, log }: Patience,
  work: () => Promise<Result>,
): Promise<Result> {
  const span = `${spanMs / 1_000} s`;
  try {
    return await pRetry(work, {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: ASKED_AGAIN_MS,
      factor: 1,
      maxRetryTime: Math.max(0, untilMs - performance.now()),
      shouldRetry: ({ error }) => isTaken(error),
      onFailedAttempt: ({ error, attemptNumber, retryDelay }) => {
        if (attemptNumber > 1 || retryDelay === 0 || !isTaken(error)) return;
        log.info({}, `All connections to PostgreSQL are taken: waiting for one, for up to ${span}`);
      },
    });
  } catch (error) {
    if (!isTaken(error)) throw error;
    throw new ConnectionsTakenError(
      `PostgreSQL had no free connection for this command within ${span} (${error.message}). Run it again when ` +
        'fewer commands run; or lower STRATA_DATABASE_CONNECTIONS_MAX of the servers, or raise max_connections ' +
        'of PostgreSQL (docs/operating.md, Connections to PostgreSQL)',
      { cause: error },
    );
  }
}

/** Opens connections of the pool. Those that it got stay in the pool if another one is refused. */
export async function fillPool(pool: pg.Pool, count: number): Promise<void> {
  const taken: pg.PoolClient[] = [];
  try {
    while (taken.length < count) taken.push(await pool.connect());
  } finally {
    for (const client of taken) client.release();
  }
}

function isTaken(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === TOO_MANY;
}
