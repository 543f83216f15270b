/** One transaction on a connection that nobody else uses meanwhile. */
import type { Queryable } from './projection.ts';

/** Commits what the work did, or rolls back and throws what it threw. */
export async function inTransaction<Result>(connection: Queryable, work: () => Promise<Result>): Promise<Result> {
  await connection.query({ text: 'BEGIN' });
  let result: Result;
  try {
    result = await work();
  } catch (error) {
    await rollBack(connection, error);
    throw error;
  }
  // Its failure leaves nothing to roll back: either the server refused it, or the connection is gone.
  await connection.query({ text: 'COMMIT' });
  return result;
}

/** A connection that cannot even roll back is of no more use: that outweighs why the work failed. */
async function rollBack(connection: Queryable, reason: unknown): Promise<void> {
  try {
    await connection.query({ text: 'ROLLBACK' });
  } catch (error) {
    if (error instanceof Error) error.cause ??= reason;
    throw error;
  }
}
