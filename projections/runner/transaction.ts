/** Work on one connection: statements one after another, and transactions that no other work shares. */
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import type { Queryable } from './projection.ts';

/** Commits what the work did, or rolls back and throws what the work threw. */
export async function inTransaction<Result>(connection: Queryable, work: () => Promise<Result>): Promise<Result> {
  await connection.query({ text: 'BEGIN' });
  let result: Result;
  try {
    result = await work();
  } catch (error) {
    await rollBack(connection, error);
    throw error;
  }
  // A failed COMMIT leaves nothing to roll back: either the server refused it, or the connection is gone.
  await connection.query({ text: 'COMMIT' });
  return result;
}

/**
 * Throws if the rollback itself fails: the connection is then unusable, which matters more than why the work failed.
 */
async function rollBack(connection: Queryable, reason: unknown): Promise<void> {
  try {
    await connection.query({ text: 'ROLLBACK' });
  } catch (error) {
    if (error instanceof Error) error.cause ??= reason;
    throw error;
  }
}

/** Wraps a connection for concurrent callers: sends each statement after the previous one has been answered. */
export function serialized(connection: Queryable): Queryable {
  const inTurn = createConcurrencyLimit(1);
  return { query: (statement) => inTurn(() => connection.query(statement)) };
}
