/**
 * The life of a model's generations: created empty, made live in one step, dropped when nobody needs them.
 *
 * Invariants: one row says which generation is live, so readers see one whole generation at a time. Nothing is
 * dropped that is live, that is being built, or that a process of another program version still writes or reads.
 */
import type { Pool } from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { CheckpointMoved } from './faults.ts';
import type { Projection, Queryable } from './projection.ts';
import { createTables, dropTables, type Generation, tableNames } from './tables.ts';
import { inTransaction } from './transaction.ts';

type Named = Pick<Projection, 'name' | 'version'>;

/** Says whether any process reads the live generation of the model in that version. */
export type IsModelRead = (model: string, version: number) => Promise<boolean>;

/** Names the advisory lock of the process that writes a model's live generation. */
export function leadLock({ name, version }: Named): string {
  return `strata.read_models.${name}.v${version}`;
}

/** Names the advisory lock of the process that builds a generation beside the live one. */
export function buildLock({ name, version }: Named): string {
  return `strata.read_models.${name}.v${version}.build`;
}

/**
 * Creates a generation with empty tables and its checkpoint at the log's start. Nobody reads it until it is made live.
 * Returns in `replaces` the generation that is live now, 0 for none.
 */
export async function createGeneration(
  database: Queryable,
  projection: Projection,
): Promise<{ readonly generation: Generation; readonly replaces: number }> {
  const { rows } = await database.query({
    text: `INSERT INTO read_models.projections (name, version, live_generation, last_generation)
      VALUES ($1, $2, 0, 1)
      ON CONFLICT (name, version) DO UPDATE SET last_generation = projections.last_generation + 1
      RETURNING last_generation, live_generation`,
    values: [projection.name, projection.version],
  });
  const generation = { projection, number: rows[0]?.['last_generation'] as number };
  const replaces = rows[0]?.['live_generation'] as number;
  await createTables(database, generation);
  await database.query({
    text: `INSERT INTO read_models.checkpoints (name, version, generation, tables, position) VALUES ($1, $2, $3, $4, 0)`,
    values: [projection.name, projection.version, generation.number, tableNames(generation)],
  });
  return { generation, replaces };
}

/**
 * Makes a generation live in place of `replaces`, whose tables were lost or never existed and are not read. Deletes the
 * checkpoint of `replaces` in the same transaction, so that a process that writes it notices. Throws `CheckpointMoved`
 * if another generation is live.
 */
export async function makeLive(database: Queryable, next: Generation, replaces: number): Promise<void> {
  await inTransaction(database, () => replaceLive(database, next, replaces));
}

async function replaceLive(database: Queryable, { projection, number }: Generation, replaces: number): Promise<void> {
  await deleteCheckpoint(database, projection, replaces);
  const { rowCount } = await database.query({
    text: `UPDATE read_models.projections SET live_generation = $3, halted = NULL, parked_streams = (
        SELECT count(DISTINCT stream) FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3
      ) WHERE name = $1 AND version = $2 AND live_generation = $4`,
    values: [projection.name, projection.version, number, replaces],
  });
  if (rowCount !== 1) throw new CheckpointMoved(`${projection.name} has another live generation than ${replaces}`);
}

/**
 * Makes a generation live in place of the live one, whose writer it blocks until then: `catchUp` brings the new
 * generation to exactly the live one's position, on another connection. Throws `CheckpointMoved` if another generation
 * is live.
 */
export async function switchLive(
  database: Queryable,
  next: Generation,
  live: { readonly generation: number; readonly tables: readonly string[] },
  catchUp: (position: LogPosition) => Promise<void>,
): Promise<void> {
  const { name, version } = next.projection;
  await inTransaction(database, async () => {
    const { rows } = await database.query({
      text: `SELECT position FROM read_models.checkpoints
        WHERE name = $1 AND version = $2 AND generation = $3 FOR UPDATE`,
      values: [name, version, live.generation],
    });
    const position = rows[0]?.['position'];
    if (position === undefined) throw new CheckpointMoved(`${name} generation ${live.generation} is gone`);
    await catchUp(BigInt(position as string) as LogPosition);
    // Also deletes the old generation's checkpoint, so that its writer notices.
    await replaceLive(database, next, live.generation);
  });
  await dropTables(database, live.tables);
}

/** Drops a generation that is not live: first its checkpoint, so that nobody takes it for complete, then its tables. */
export async function dropGeneration(database: Queryable, generation: Generation): Promise<void> {
  await inTransaction(database, () => deleteCheckpoint(database, generation.projection, generation.number));
  await dropTables(database, tableNames(generation));
}

async function deleteCheckpoint(database: Queryable, { name, version }: Named, generation: number): Promise<void> {
  for (const table of ['checkpoints', 'parked']) {
    await database.query({
      text: `DELETE FROM read_models.${table} WHERE name = $1 AND version = $2 AND generation = $3`,
      values: [name, version, generation],
    });
  }
}

/** Stores why a model is halted, for every node to see; null when it continues. */
export async function setHalted(database: Queryable, { name, version }: Named, reason: string | null): Promise<void> {
  await database.query({
    text: `UPDATE read_models.projections SET halted = $3 WHERE name = $1 AND version = $2`,
    values: [name, version, reason],
  });
}

/**
 * Drops the generations of older program versions that no process writes or reads any more, and those of interrupted
 * builds. Returns false if a lock or a reader keeps some of them. The caller calls it after the live generation has
 * caught up.
 */
export async function dropUnused(pool: Pool, projection: Projection, isRead: IsModelRead): Promise<boolean> {
  let complete = true;
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ version: number; generation: number; tables: string[]; live: boolean }>({
      text: `SELECT version, generation, tables, generation = live_generation AS live
        FROM read_models.checkpoints JOIN read_models.projections USING (name, version)
        WHERE name = $1 AND (version < $2 OR (version = $2 AND generation <> live_generation))`,
      values: [projection.name, projection.version],
    });
    for (const { version, generation, tables, live } of rows) {
      const named = { name: projection.name, version };
      if (live && (await isRead(named.name, version))) {
        complete = false;
        continue;
      }
      const lock = live ? leadLock(named) : buildLock(named);
      const taken = await client.query<{ taken: boolean }>({
        text: `SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken`,
        values: [lock],
      });
      if (taken.rows[0]?.taken !== true) {
        complete = false;
        continue;
      }
      await inTransaction(client, () => deleteCheckpoint(client, named, generation));
      await dropTables(client, tables);
      await client.query({ text: `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, values: [lock] });
    }
    await client.query({
      text: `DELETE FROM read_models.projections AS p WHERE name = $1 AND version < $2 AND NOT EXISTS (
        SELECT FROM read_models.checkpoints AS c WHERE c.name = p.name AND c.version = p.version)`,
      values: [projection.name, projection.version],
    });
    client.release();
    return complete;
  } catch (error) {
    // Destroying the connection releases the locks that it may still hold.
    client.release(true);
    throw error;
  }
}
