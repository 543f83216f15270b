/**
 * Parked streams: the event that could not be applied, and every later event of its stream.
 *
 * Invariants: `parked_streams` of the live generation is the number of streams with a row here, because readers
 * query this table only if that number is not zero.
 */
import type { LogPosition, RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import { CheckpointMoved, type ParkingReason } from './faults.ts';
import type { Projection, Queryable } from './projection.ts';
import type { Generation } from './tables.ts';

export interface ParkedStream {
  readonly projection: string;
  readonly stream: StreamName;
  /** The revision of the first event that is not applied. */
  readonly revision: number;
  readonly events: number;
  readonly error: string;
  readonly attempts: number;
}

function keyOf({ projection, number }: Generation): readonly [string, number, number] {
  return [projection.name, projection.version, number];
}

/** Returns the parked streams, each with whether it exceeded a limit of its own; otherwise the model failed on it. */
export async function parkedStreams(
  database: Queryable,
  generation: Generation,
): Promise<ReadonlyMap<string, { readonly beyondBounds: boolean }>> {
  const { rows } = await database.query({
    text: `SELECT stream, bool_or(beyond_bounds) AS beyond_bounds FROM read_models.parked
      WHERE name = $1 AND version = $2 AND generation = $3 GROUP BY stream`,
    values: [...keyOf(generation)],
  });
  return new Map(
    rows.map((row) => [row['stream'] as string, { beyondBounds: row['beyond_bounds'] as boolean }] as const),
  );
}

/**
 * Records events of parked streams; runs in the transaction that moves the checkpoint past them. They have the retry of
 * their stream; where a replay has just applied all before them, that replay goes on with them.
 */
export async function insertParked(
  database: Queryable,
  generation: Generation,
  events: readonly RecordedEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await database.query({
    text: `INSERT INTO read_models.parked (name, version, generation, stream, revision, event_id, account_id, retry_at)
      SELECT $1, $2, $3, e.*, (
        SELECT CASE WHEN count(*) = 0 THEN now() ELSE min(p.retry_at) END FROM read_models.parked AS p
        WHERE p.name = $1 AND p.version = $2 AND p.generation = $3 AND p.stream = e.stream)
      FROM unnest($4::text[], $5::int[], $6::uuid[], $7::uuid[]) AS e(stream, revision, event_id, account_id)`,
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

/** Returns the first parked events of a stream, in order. */
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

/** Locks parked events against other replays; throws `CheckpointMoved` if some of them are not parked any more. */
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
  if (rowCount !== events) throw new CheckpointMoved(`Another process replayed ${stream}`);
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

/** The wait before a retry of a stream whose fault may pass without help. */
const LATER_MS = 15_000;

/** Stores why a parked stream failed, and when to retry it. */
export async function setRetry(
  database: Queryable,
  generation: Generation,
  stream: string,
  { fault, retry, beyondBounds }: ParkingReason,
): Promise<void> {
  const delayMs = { soon: 0, later: LATER_MS, 'on-request': null }[retry];
  await database.query({
    text: `UPDATE read_models.parked
      SET error = $5, attempts = attempts + 1, retry_at = now() + $6::int * interval '1 millisecond', beyond_bounds = $7
      WHERE name = $1 AND version = $2 AND generation = $3 AND stream = $4`,
    values: [...keyOf(generation), stream, fault, delayMs, beyondBounds],
  });
}

/** Returns the streams that are due for a retry. */
export async function streamsToRetry(database: Queryable, generation: Generation): Promise<readonly string[]> {
  const { rows } = await database.query({
    text: `SELECT stream FROM read_models.parked
      WHERE name = $1 AND version = $2 AND generation = $3 GROUP BY stream HAVING min(retry_at) <= now()`,
    values: [...keyOf(generation)],
  });
  return rows.map((row) => row['stream'] as string);
}

async function countParked(database: Queryable, generation: Generation): Promise<void> {
  // A separate statement: the count below then sees what the previous holder of this lock committed.
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

/** The live generation of a model, as an operator sees it. */
export interface ModelFigures {
  readonly name: string;
  /** Null before the generation is built. */
  readonly position: LogPosition | null;
  /** How many streams wait for an operator. */
  readonly waitingStreams: number;
}

/** Returns the figures of the models in one query. A model whose build has not begun is not among them. */
export async function readModelFigures(
  database: Queryable,
  projections: readonly Projection[],
): Promise<readonly ModelFigures[]> {
  const { rows } = await database.query({
    text: `SELECT l.name, c.position, (SELECT count(DISTINCT p.stream)::int FROM read_models.parked AS p
        WHERE p.name = l.name AND p.version = l.version AND p.generation = l.live_generation
          AND p.retry_at IS NULL AND p.error IS NOT NULL) AS streams
      FROM read_models.projections AS l LEFT JOIN read_models.checkpoints AS c
        ON c.name = l.name AND c.version = l.version AND c.generation = l.live_generation
      WHERE (l.name, l.version) IN (SELECT * FROM unnest($1::text[], $2::int[]))`,
    values: [projections.map(({ name }) => name), projections.map(({ version }) => version)],
  });
  return rows.map((row) => {
    const position = row['position'] as string | null;
    return {
      name: row['name'] as string,
      position: position === null ? null : (BigInt(position) as LogPosition),
      waitingStreams: row['streams'] as number,
    };
  });
}

/** Returns the parked streams of the models' live generations. */
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

/** Makes parked streams (all, or `stream`) due for a retry by the models' leaders now. Returns how many. */
export async function requestReplay(
  database: Queryable,
  projections: readonly Projection[],
  stream: string | null,
): Promise<number> {
  const { rows } = await database.query({
    text: `WITH requested AS (
        UPDATE read_models.parked AS p SET retry_at = now()
        FROM read_models.projections AS l
        WHERE l.name = p.name AND l.version = p.version AND p.generation = l.live_generation
          AND ($3::text IS NULL OR p.stream = $3)
          AND (p.name, p.version) IN (SELECT * FROM unnest($1::text[], $2::int[]))
        RETURNING p.name, p.stream)
      SELECT count(DISTINCT (name, stream))::int AS streams FROM requested`,
    values: [projections.map(({ name }) => name), projections.map(({ version }) => version), stream],
  });
  return (rows[0]?.['streams'] as number | undefined) ?? 0;
}
