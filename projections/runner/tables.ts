/**
 * The schema `read_models`: the runner's own tables, and those of every generation of every model.
 *
 * Must stay true: nothing outside this schema depends on it. It may be dropped whole while no runner works,
 * and the next start builds it again from the log.
 */
import type { Projection, Queryable, TableOf } from './projection.ts';

/** One build of a model: its code version and a number that is never used twice. */
export interface Generation {
  readonly projection: Projection;
  readonly number: number;
}

/**
 * - `projections`: which generation is read, why it halted, how many streams are parked. Rarely written, since
 *   every read looks at it.
 * - `checkpoints`: how far each generation is, the last event's places and id beside it, and its tables' names,
 *   so that a later program can drop what it no longer knows.
 * - `parked`: events that were set aside, each with every later one of its stream.
 */
const RUNNER_TABLES = `
  CREATE SCHEMA IF NOT EXISTS read_models;
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
  -- Tables of an older program lack it. Looked for first, since ALTER TABLE waits for every reader.
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
    PRIMARY KEY (name, version, generation, stream, revision)
  );
`;

/** Two starts at once would both see no schema: one does the work, the other waits. */
const CREATION_LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('strata.read_models', 0))`;

/** Creates the runner's own tables where they are missing. Several statements in one text are one transaction. */
export async function createRunnerTables(database: Queryable): Promise<void> {
  await database.query({ text: `${CREATION_LOCK}; ${RUNNER_TABLES}` });
}

/** The names of a generation's tables; throws for a table that the model does not define. */
export function tablesOf({ projection, number }: Generation): TableOf {
  const known = new Set(projection.tables.map(({ name }) => name));
  return (table) => {
    if (!known.has(table)) throw new TypeError(`The model ${projection.name} has no table ${table}`);
    return `read_models.${table}_v${projection.version}_${number}`;
  };
}

/** The names of all tables of a generation. */
export function tableNames(generation: Generation): readonly string[] {
  return generation.projection.tables.map(({ name }) => tablesOf(generation)(name));
}

/** Creates a generation's tables, empty. Those of an attempt that was cut short go first. */
export async function createTables(database: Queryable, generation: Generation): Promise<void> {
  const table = tablesOf(generation);
  for (const definition of generation.projection.tables) {
    await database.query({ text: `DROP TABLE IF EXISTS ${table(definition.name)}` });
    for (const text of definition.create(table(definition.name))) await database.query({ text });
  }
}

/**
 * Drops tables one by one: dropping several in one transaction could deadlock with a reader that holds the
 * second and asks for the first.
 */
export async function dropTables(database: Queryable, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    if (!/^read_models\.[a-z_0-9]+$/.test(table)) throw new TypeError(`Not a table of the read models: ${table}`);
    await database.query({ text: `DROP TABLE IF EXISTS ${table}` });
  }
}

/** Forgets every read model, for a log that is replaced whole. No runner may be at work. */
export async function dropReadModels(database: Queryable): Promise<void> {
  const { rows } = await database.query({
    text: `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'read_models'`,
  });
  // One by one: all in one transaction may need more locks than the server has.
  for (const { name } of rows) await database.query({ text: `DROP TABLE IF EXISTS ${String(name)} CASCADE` });
  await database.query({ text: `DROP SCHEMA IF EXISTS read_models CASCADE` });
}

/** Whether all of them are there. */
export async function tablesExist(database: Queryable, tables: readonly string[]): Promise<boolean> {
  const { rows } = await database.query({
    text: `SELECT count(*) FILTER (WHERE to_regclass(name) IS NULL)::int AS missing FROM unnest($1::text[]) AS name`,
    values: [tables],
  });
  return rows[0]?.['missing'] === 0;
}
