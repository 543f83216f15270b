/**
 * How far a generation of a model is: the row that fences its writers.
 *
 * Must stay true: a checkpoint moves only from exactly the position its writer last saw, in the transaction
 * that holds the rows of those events; so each event is applied once, whoever else believes to be the runner.
 */
import { EVENT_CATALOGUE } from '../../core/kernel/catalogue.ts';
import { categoryOf, type LogPosition, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { joined, prepared } from './bulk.ts';
import { CheckpointMoved, codeOf, ProjectionHalted } from './faults.ts';
import type { ListStatement, Projection, Queryable } from './projection.ts';
import type { Generation } from './tables.ts';

/** The last record event a generation has seen. Operational ones are pruned, so they prove nothing later. */
export interface LastEvent {
  readonly stream: StreamName;
  readonly revision: number;
  readonly id: string;
  /** Where it stood in the log; null when an older program wrote the checkpoint. */
  readonly position: LogPosition | null;
}

export interface Checkpoint {
  readonly position: LogPosition;
  readonly last: LastEvent | null;
}

export interface LiveState {
  readonly generation: number;
  readonly halted: string | null;
  readonly checkpoint: Checkpoint;
  readonly tables: readonly string[];
}

export async function readLiveState(database: Queryable, projection: Projection): Promise<LiveState | null> {
  const { rows } = await database.query({
    text: `SELECT generation, halted, tables, position, event_stream, event_revision, event_id, event_position
      FROM read_models.projections JOIN read_models.checkpoints USING (name, version)
      WHERE name = $1 AND version = $2 AND generation = live_generation`,
    values: [projection.name, projection.version],
  });
  const row = rows[0];
  if (row === undefined) return null;
  const stream = row['event_stream'] as StreamName | null;
  const eventPosition = row['event_position'] as string | null;
  return {
    generation: row['generation'] as number,
    halted: row['halted'] as string | null,
    tables: row['tables'] as string[],
    checkpoint: {
      position: BigInt(row['position'] as string) as LogPosition,
      last:
        stream === null
          ? null
          : {
              stream,
              revision: row['event_revision'] as number,
              id: row['event_id'] as string,
              position: eventPosition === null ? null : (BigInt(eventPosition) as LogPosition),
            },
    },
  };
}

/** One step of a generation's checkpoint. */
export interface CheckpointMove {
  readonly generation: Generation;
  readonly from: LogPosition;
  readonly to: Checkpoint;
}

const MOVE = `UPDATE read_models.checkpoints
  SET position = $5, event_stream = $6, event_revision = $7, event_id = $8, event_position = $9
  WHERE name = $1 AND version = $2 AND generation = $3 AND position = $4`;
/** What `done` divides by when the checkpoint did not stand where it should: it fails the whole statement. */
const DIVISION_BY_ZERO = '22012';

function valuesOf({ generation, from, to }: CheckpointMove): unknown[] {
  const { projection, number } = generation;
  return [
    ...[projection.name, projection.version, number, from, to.position],
    ...[to.last?.stream ?? null, to.last?.revision ?? null, to.last?.id ?? null, to.last?.position ?? null],
  ];
}

/** Moves the checkpoint; throws `CheckpointMoved` when it no longer stands where this writer left it. */
export async function moveCheckpoint(database: Queryable, move: CheckpointMove): Promise<void> {
  const { rowCount } = await database.query(prepared(MOVE, valuesOf(move)));
  if (rowCount !== 1) throw movedAway(move);
}

/** The same together with list statements, all of it one statement and so one transaction. */
export async function moveCheckpointWith(
  database: Queryable,
  move: CheckpointMove,
  lists: readonly ListStatement[],
): Promise<void> {
  const first = { text: `${MOVE} RETURNING 1`, values: valuesOf(move), result: '1 / count(*) FROM done' };
  const statement = joined(lists, first);
  if (statement === null) return;
  try {
    await database.query(statement);
  } catch (error) {
    if (codeOf(error) === DIVISION_BY_ZERO) throw movedAway(move);
    throw error;
  }
}

/** Of several generations at once, by their positions alone: the last event that each has seen stays. */
const MOVE_POSITIONS = `UPDATE read_models.checkpoints AS c SET position = m.after
  FROM json_to_recordset($1) AS m(name text, version integer, generation integer, before bigint, after bigint)
  WHERE c.name = m.name AND c.version = m.version AND c.generation = m.generation AND c.position = m.before
  RETURNING c.name, c.generation`;

/** Moves several checkpoints past events that their models have nothing to do with; returns those that moved. */
export async function movePositions(
  database: Queryable,
  moves: readonly CheckpointMove[],
): Promise<ReadonlySet<CheckpointMove>> {
  const rows = moves.map(({ generation: { projection, number }, from, to }) => ({
    ...{ name: projection.name, version: projection.version, generation: number },
    ...{ before: String(from), after: String(to.position) },
  }));
  const moved = (await database.query(prepared(MOVE_POSITIONS, [JSON.stringify(rows)]))).rows;
  const has = ({ generation: { projection, number } }: CheckpointMove): boolean =>
    moved.some((row) => row['name'] === projection.name && row['generation'] === number);
  return new Set(moves.filter(has));
}

function movedAway({ generation: { projection, number }, from }: CheckpointMove): CheckpointMoved {
  return new CheckpointMoved(`${projection.name} generation ${number} is no longer at ${from}`);
}

/** The checkpoint after a batch that ends at a position. */
export function checkpointAfter(
  before: Checkpoint,
  events: readonly RecordedEvent[],
  position: LogPosition,
): Checkpoint {
  const last = events.findLast(({ stream, type }) => EVENT_CATALOGUE[categoryOf(stream)]?.[type]?.record === true);
  return {
    position,
    last:
      last === undefined
        ? before.last
        : { stream: last.stream, revision: last.revision, id: last.id, position: last.position },
  };
}

/**
 * The log must still hold the event a checkpoint stands at, and where it stood: a failover or a restore may have
 * replaced it, and a log that was moved has the same events at other positions.
 */
export async function checkAgainstLog(
  events: Pick<EventStore, 'readStream'>,
  projection: Projection,
  { last }: Checkpoint,
): Promise<void> {
  if (last === null) return;
  const { stream, revision, id, position } = last;
  const [found] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  if (found?.id === id) {
    if (position === null || found.position === position) return;
    throw new ProjectionHalted(
      `${projection.name} was built from another copy of this log, where event ${id} stood at ${position}; ` +
        `here it stands at ${found.position}: rebuild it`,
    );
  }
  const there = found === undefined ? 'no event' : `event ${found.id}`;
  throw new ProjectionHalted(
    `${projection.name} was built from event ${id} at ${stream} revision ${revision}; the log has ${there} there`,
  );
}
