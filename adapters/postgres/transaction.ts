/** Statements on one connection that are committed together, or not at all. */
import type pg from 'pg';

/** Commits what the work did, or rolls back and throws what the work threw. */
export async function inTransaction<Result>(client: pg.ClientBase, work: () => Promise<Result>): Promise<Result> {
  await client.query('BEGIN');
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** The same on a connection of the pool. After a failure the connection is closed, since its state is not known. */
export async function inPoolTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.ClientBase) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  try {
    const result = await inTransaction(client, () => work(client));
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}
