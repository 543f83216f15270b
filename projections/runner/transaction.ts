/** Work on one connection: statements one after another, and transactions that nobody else uses meanwhile. */
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

/** The connection for callers that ask at the same time: each statement is sent when the one before is answered. */
export function oneAtATime(connection: Queryable): Queryable {
  let last: Promise<unknown> = Promise.resolve();
  return {
    query(statement) {
      const send = (): ReturnType<Queryable['query']> => connection.query(statement);
      const answer = last.then(send, send);
      last = answer;
      return answer;
    },
  };
}
