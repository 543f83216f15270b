/**
 * Streams that were set aside: the event that could not be applied, and every later one of its stream.
 *
 * Must stay true: `parked_streams` of the live generation is how many streams have a row here, since readers
 * look here only when it is not zero.
 */
import type { RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import { CheckpointMoved, type Retry } from './faults.ts';
import type { Projection, Queryable } from './projection.ts';
import type { Generation } from './tables.ts';

export interface ParkedStream {
  readonly projection: string;
  readonly stream: StreamName;
  /** The first event that is not applied. */
  readonly revision: number;
  readonly events: number;
  readonly error: string;
  readonly attempts: number;
}

function keyOf({ projection, number }: Generation): readonly [string, number, number] {
  return [projection.name, projection.version, number];
}

export async function parkedStreams(database: Queryable, generation: Generation): Promise<ReadonlySet<string>> {
  const { rows } = await database.query({
    text: `SELECT DISTINCT stream FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3`,
    values: [...keyOf(generation)],
  });
  return new Set(rows.map((row) => row['stream'] as string));
}

/** Records events of parked streams; within the transaction that moves the checkpoint over them. */
export async function holdEvents(
  database: Queryable,
  generation: Generation,
  events: readonly RecordedEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await database.query({
    text: `INSERT INTO read_models.parked (name, version, generation, stream, revision, event_id, account_id)
      SELECT $1, $2, $3, * FROM unnest($4::text[], $5::int[], $6::uuid[], $7::uuid[])`,
    values: [
      ...keyOf(generation),
      events.map(({ stream }) => stream),
      events.map(({ revision }) => revision),
      events.map(({ id }) => id),
      events.map(({ accountId }) => accountId),
    ],
  });
  await countParked(database, generation);
}

/** The first parked events of a stream, in order. */
export async function readParked(
  database: Queryable,
  generation: Generation,
  stream: string,
  limit: number,
): Promise<readonly { readonly stream: StreamName; readonly revision: number; readonly id: string }[]> {
  const { rows } = await database.query({
    text: `SELECT stream, revision, event_id FROM read_models.parked
      WHERE name = $1 AND version = $2 AND generation = $3 AND stream = $4 ORDER BY revision LIMIT $5`,
    values: [...keyOf(generation), stream, limit],
  });
  return rows.map((row) => ({
    stream: row['stream'] as StreamName,
    revision: row['revision'] as number,
    id: row['event_id'] as string,
  }));
}

/** Keeps others from replaying the same events; throws `CheckpointMoved` when some are no longer parked. */
export async function lockParked(
  database: Queryable,
  generation: Generation,
  stream: string,
  upToRevision: number,
  events: number,
): Promise<void> {
  const { rowCount } = await database.query({
    text: `SELECT FROM read_models.parked
      WHERE name = $1 AND version = $2 AND generation = $3 AND stream = $4 AND revision <= $5 FOR UPDATE`,
    values: [...keyOf(generation), stream, upToRevision],
  });
  if (rowCount !== events) throw new CheckpointMoved(`Somebody else replayed ${stream}`);
}

export async function removeParked(
  database: Queryable,
  generation: Generation,
  stream: string,
  upToRevision: number,
): Promise<void> {
  await database.query({
    text: `DELETE FROM read_models.parked
      WHERE name = $1 AND version = $2 AND generation = $3 AND stream = $4 AND revision <= $5`,
    values: [...keyOf(generation), stream, upToRevision],
  });
  await countParked(database, generation);
}

/** How soon a stream whose fault may pass by itself is tried again. */
const LATER_MS = 15_000;

/** Notes why a parked stream failed, and when to try it again. */
export async function setRetry(
  database: Queryable,
  generation: Generation,
  stream: string,
  error: string,
  retry: Retry,
): Promise<void> {
  const delayMs = { soon: 0, later: LATER_MS, asked: null }[retry];
  await database.query({
    text: `UPDATE read_models.parked
      SET error = $5, attempts = attempts + 1, retry_at = now() + $6::int * interval '1 millisecond'
      WHERE name = $1 AND version = $2 AND generation = $3 AND stream = $4`,
    values: [...keyOf(generation), stream, error, delayMs],
  });
}

/** Streams whose time to be tried again has come. */
export async function streamsToRetry(database: Queryable, generation: Generation): Promise<readonly string[]> {
  const { rows } = await database.query({
    text: `SELECT stream FROM read_models.parked
      WHERE name = $1 AND version = $2 AND generation = $3 GROUP BY stream HAVING min(retry_at) <= now()`,
    values: [...keyOf(generation)],
  });
  return rows.map((row) => row['stream'] as string);
}

async function countParked(database: Queryable, generation: Generation): Promise<void> {
  // A statement of its own, so that the count is taken after whoever counted before has committed.
  await database.query({
    text: `SELECT FROM read_models.projections WHERE name = $1 AND version = $2 FOR UPDATE`,
    values: keyOf(generation).slice(0, 2),
  });
  await database.query({
    text: `UPDATE read_models.projections SET parked_streams = (
        SELECT count(DISTINCT stream) FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3)
      WHERE name = $1 AND version = $2 AND live_generation = $3`,
    values: [...keyOf(generation)],
  });
}

/** What is parked in the live generations of the models. */
export async function listParked(
  database: Queryable,
  projections: readonly Projection[],
): Promise<readonly ParkedStream[]> {
  const { rows } = await database.query({
    text: `SELECT DISTINCT ON (name, stream) name, stream, revision, error, attempts,
        count(*) OVER (PARTITION BY name, stream)::int AS events
      FROM read_models.parked JOIN read_models.projections AS p USING (name, version)
      WHERE generation = live_generation AND (name, version) IN (SELECT * FROM unnest($1::text[], $2::int[]))
      ORDER BY name, stream, revision`,
    values: [projections.map(({ name }) => name), projections.map(({ version }) => version)],
  });
  return rows.map((row) => ({
    projection: row['name'] as string,
    stream: row['stream'] as StreamName,
    revision: row['revision'] as number,
    events: row['events'] as number,
    error: (row['error'] as string | null) ?? '',
    attempts: row['attempts'] as number,
  }));
}

/** Asks whoever runs the models to try parked streams again now; all of them, or one. Returns how many. */
export async function requestReplay(
  database: Queryable,
  projections: readonly Projection[],
  stream: string | null,
): Promise<number> {
  const { rows } = await database.query({
    text: `WITH asked AS (
        UPDATE read_models.parked AS p SET retry_at = now()
        FROM read_models.projections AS l
        WHERE l.name = p.name AND l.version = p.version AND p.generation = l.live_generation
          AND ($3::text IS NULL OR p.stream = $3)
          AND (p.name, p.version) IN (SELECT * FROM unnest($1::text[], $2::int[]))
        RETURNING p.name, p.stream)
      SELECT count(DISTINCT (name, stream))::int AS streams FROM asked`,
    values: [projections.map(({ name }) => name), projections.map(({ version }) => version), stream],
  });
  return (rows[0]?.['streams'] as number | undefined) ?? 0;
}
