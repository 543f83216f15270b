/**
 * The checkpoint of a generation: the row that says how far it is and that fences its writers.
 *
 * Invariants: a writer moves the checkpoint only from exactly the position it last saw, in the transaction that
 * writes the rows of those events. So each event is applied once, even if several processes believe that they are the
 * writer.
 */
import { type LogPosition, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { RecordPlace } from '../../core/ports/read-mark.ts';
import { lastRecordOf } from '../../core/runtime/read-mark.ts';
import { joinStatements, prepared } from './bulk.ts';
import { CheckpointMoved, codeOf, ProjectionHalted } from './faults.ts';
import type { ListStatement, Projection, Queryable } from './projection.ts';
import type { Generation } from './tables.ts';

/**
 * The last record event at or before a checkpoint. Operational events may be pruned, so they cannot identify a log
 * later.
 */
export interface LastEvent extends Omit<RecordPlace, 'position' | 'eventId'> {
  readonly eventId: string;
  /** The event's position in the log; null if an older program wrote the checkpoint. */
  readonly position: LogPosition | null;
}

export interface Checkpoint {
  /** The position of the last event that was passed, whether or not the model wants it. */
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
              eventId: row['event_id'] as string,
              position: eventPosition === null ? null : (BigInt(eventPosition) as LogPosition),
            },
    },
  };
}

/** One move of a generation's checkpoint. */
export interface CheckpointMove {
  readonly generation: Generation;
  readonly from: LogPosition;
  readonly to: Checkpoint;
}

const MOVE = `UPDATE read_models.checkpoints
  SET position = $5, event_stream = $6, event_revision = $7, event_id = $8, event_position = $9
  WHERE name = $1 AND version = $2 AND generation = $3 AND position = $4`;
/**
 * The statement divides by the row count of `done`: if the checkpoint was not at `from`, the division fails all of it.
 */
const DIVISION_BY_ZERO = '22012';

function valuesOf({ generation, from, to }: CheckpointMove): unknown[] {
  const { projection, number } = generation;
  return [
    projection.name,
    projection.version,
    number,
    from,
    to.position,
    to.last?.stream ?? null,
    to.last?.revision ?? null,
    to.last?.eventId ?? null,
    to.last?.position ?? null,
  ];
}

/** Moves the checkpoint; throws `CheckpointMoved` if it is not at `from` any more. */
export async function moveCheckpoint(database: Queryable, move: CheckpointMove): Promise<void> {
  const { rowCount } = await database.query(prepared(MOVE, valuesOf(move)));
  if (rowCount !== 1) throw checkpointMoved(move);
}

/** Moves the checkpoint and runs the list statements as one statement, and so as one transaction. */
export async function moveCheckpointWith(
  database: Queryable,
  move: CheckpointMove,
  lists: readonly ListStatement[],
): Promise<void> {
  const first = { text: `${MOVE} RETURNING 1`, values: valuesOf(move), result: '1 / count(*) FROM done' };
  const statement = joinStatements(lists, first);
  if (statement === null) return;
  try {
    await database.query(statement);
  } catch (error) {
    if (codeOf(error) === DIVISION_BY_ZERO) throw checkpointMoved(move);
    throw error;
  }
}

/** Moves the checkpoints of several generations with one statement. */
const MOVE_POSITIONS = `UPDATE read_models.checkpoints AS c SET position = m.after, event_stream = m.event_stream,
    event_revision = m.event_revision, event_id = m.event_id, event_position = m.event_position
  FROM json_to_recordset($1) AS m(name text, version integer, generation integer, before bigint, after bigint,
    event_stream text, event_revision integer, event_id uuid, event_position bigint)
  WHERE c.name = m.name AND c.version = m.version AND c.generation = m.generation AND c.position = m.before
  RETURNING c.name, c.generation`;

/** Moves several checkpoints past events that their models do not want; returns the moves that took effect. */
export async function movePositions(
  database: Queryable,
  moves: readonly CheckpointMove[],
): Promise<ReadonlySet<CheckpointMove>> {
  const rows = moves.map(({ generation: { projection, number }, from, to }) => ({
    name: projection.name,
    version: projection.version,
    generation: number,
    before: String(from),
    after: String(to.position),
    event_stream: to.last?.stream ?? null,
    event_revision: to.last?.revision ?? null,
    event_id: to.last?.eventId ?? null,
    event_position: to.last?.position?.toString() ?? null,
  }));
  const moved = (await database.query(prepared(MOVE_POSITIONS, [JSON.stringify(rows)]))).rows;
  const has = ({ generation: { projection, number } }: CheckpointMove): boolean =>
    moved.some((row) => row['name'] === projection.name && row['generation'] === number);
  return new Set(moves.filter(has));
}

function checkpointMoved({ generation: { projection, number }, from }: CheckpointMove): CheckpointMoved {
  return new CheckpointMoved(`${projection.name} generation ${number} is no longer at position ${from}`);
}

/**
 * Returns the checkpoint after a batch that ends at `position`. `passed` is the last record event between the previous
 * batch and `position`, whether or not the batch contains it.
 */
export function checkpointAfter(
  before: Checkpoint,
  events: readonly RecordedEvent[],
  position: LogPosition,
  passed: RecordPlace | null,
): Checkpoint {
  const known = passed !== null && passed.position <= position ? passed : lastRecordOf(events);
  return { position, last: known ?? before.last };
}

/**
 * Throws `ProjectionHalted` unless the log still holds the checkpoint's event at the same position. A failover or a
 * restore may have replaced the event; a log that was copied holds the same events at other positions.
 */
export async function checkAgainstLog(
  events: Pick<EventStore, 'readStream'>,
  projection: Projection,
  { last }: Checkpoint,
): Promise<void> {
  if (last === null) return;
  const { stream, revision, eventId: id, position } = last;
  const [found] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  if (found?.id === id) {
    if (position === null || found.position === position) return;
    throw new ProjectionHalted(
      `${projection.name} was built from another copy of this log, where event ${id} has position ${position}; ` +
        `here it has position ${found.position}: rebuild it`,
    );
  }
  const there = found === undefined ? 'no event' : `event ${found.id}`;
  throw new ProjectionHalted(
    `${projection.name} was built from event ${id} at ${stream} revision ${revision}; the log has ${there} there`,
  );
}
