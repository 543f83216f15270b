/**
 * The schema `read_models`: the runner's own tables, and the tables of every generation of every model.
 *
 * Invariants: nothing outside this schema depends on it. An operator may drop all of it while no runner is running;
 * the next start builds it again from the log.
 */
import type { Projection, Queryable, TableOf } from './projection.ts';

/** One build of a model: the projection in its code version, and a number that is never used twice. */
export interface Generation {
  readonly projection: Projection;
  readonly number: number;
}

/**
 * - `projections`: which generation is read, why the model halted, how many streams are parked. Rarely written, because
 *   every read consults it.
 * - `checkpoints`: how far each generation is; the stream, revision, position and id of the last event; and the names
 *   of the generation's tables, so that a later program can drop tables it no longer knows.
 * - `parked`: events that were parked, each with every later event of its stream. `retry_at` is null if an operator
 *   must request the next try; `beyond_bounds` is true if the stream needs more work than one stream may.
 */
const RUNNER_TABLES = `
  -- Checked first, because CREATE SCHEMA needs a right that the role that serves does not have.
  DO $$ BEGIN
    IF to_regnamespace('read_models') IS NULL THEN
      CREATE SCHEMA read_models;
    END IF;
  END $$;
  CREATE TABLE IF NOT EXISTS read_models.projections (
    name text NOT NULL,
    version integer NOT NULL,
    live_generation integer NOT NULL,
    last_generation integer NOT NULL,
    parked_streams integer NOT NULL DEFAULT 0,
    halted text,
    PRIMARY KEY (name, version)
  );
  CREATE TABLE IF NOT EXISTS read_models.checkpoints (
    name text NOT NULL,
    version integer NOT NULL,
    generation integer NOT NULL,
    tables text[] NOT NULL,
    position bigint NOT NULL,
    event_stream text,
    event_revision integer,
    event_id uuid,
    event_position bigint,
    PRIMARY KEY (name, version, generation)
  ) WITH (fillfactor = 20);
  -- Tables that an older program created lack it. Checked first, because ALTER TABLE waits for every reader.
  DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = 'read_models.checkpoints'::regclass AND attname = 'event_position') THEN
      ALTER TABLE read_models.checkpoints ADD COLUMN event_position bigint;
    END IF;
  END $$;
  CREATE TABLE IF NOT EXISTS read_models.parked (
    name text NOT NULL,
    version integer NOT NULL,
    generation integer NOT NULL,
    stream text NOT NULL,
    revision integer NOT NULL,
    event_id uuid NOT NULL,
    account_id uuid,
    error text,
    attempts integer NOT NULL DEFAULT 0,
    retry_at timestamptz,
    parked_at timestamptz NOT NULL DEFAULT now(),
    beyond_bounds boolean NOT NULL DEFAULT false,
    PRIMARY KEY (name, version, generation, stream, revision)
  );
  DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = 'read_models.parked'::regclass AND attname = 'beyond_bounds') THEN
      ALTER TABLE read_models.parked ADD COLUMN beyond_bounds boolean NOT NULL DEFAULT false;
    END IF;
  END $$;
`;

/**
 * Two processes that start at the same time would both find no schema: the lock lets one create it while the other
 * waits.
 */
const CREATION_LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('strata.read_models', 0))`;

/** Creates the runner's own tables that are missing. Several statements in one text are one transaction. */
export async function createRunnerTables(database: Queryable): Promise<void> {
  await database.query({ text: `${CREATION_LOCK}; ${RUNNER_TABLES}` });
}

/** Returns the names of a generation's tables; the result throws for a table that the model does not define. */
export function tablesOf({ projection, number }: Generation): TableOf {
  const known = new Set(projection.tables.map(({ name }) => name));
  return (table) => {
    if (!known.has(table)) throw new TypeError(`The model ${projection.name} has no table ${table}`);
    return `read_models.${table}_v${projection.version}_${number}`;
  };
}

/** Returns the names of all tables of a generation. */
export function tableNames(generation: Generation): readonly string[] {
  return generation.projection.tables.map(({ name }) => tablesOf(generation)(name));
}

/** Creates a generation's empty tables, after dropping those of an attempt that was interrupted. */
export async function createTables(database: Queryable, generation: Generation): Promise<void> {
  const table = tablesOf(generation);
  for (const definition of generation.projection.tables) {
    await database.query({ text: `DROP TABLE IF EXISTS ${table(definition.name)}` });
    for (const text of definition.create(table(definition.name))) await database.query({ text });
  }
}

/**
 * Drops tables one by one. Dropping several in one transaction could deadlock with a reader that holds a lock on the
 * second and waits for the first.
 */
export async function dropTables(database: Queryable, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    if (!/^read_models\.[a-z_0-9]+$/.test(table)) throw new TypeError(`Not a table of the read models: ${table}`);
    await database.query({ text: `DROP TABLE IF EXISTS ${table}` });
  }
}

/**
 * Drops every read model, for a log that is replaced as a whole. No runner may be running. The schema stays: it is the
 * database owner's.
 */
export async function dropReadModels(database: Queryable): Promise<void> {
  const { rows } = await database.query({
    text: `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'read_models'`,
  });
  // One by one: a single transaction could need more locks than the server has.
  for (const { name } of rows) await database.query({ text: `DROP TABLE IF EXISTS ${String(name)} CASCADE` });
}

/** Returns whether all of the tables exist. */
export async function tablesExist(database: Queryable, tables: readonly string[]): Promise<boolean> {
  const { rows } = await database.query({
    text: `SELECT count(*) FILTER (WHERE to_regclass(name) IS NULL)::int AS missing FROM unnest($1::text[]) AS name`,
    values: [tables],
  });
  return rows[0]?.['missing'] === 0;
}
