/**
 * Builds a generation of a model beside the live one: to replace it, or to compare it with the live one.
 *
 * Invariants: the live generation remains in use, read and written, during the build. A build that fails or is
 * interrupted leaves the live generation untouched.
 */
import type { Pool, PoolClient } from 'pg';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { throughPosition } from '../../core/kernel/whole-appends.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { moveCheckpoint, readLiveState } from './checkpoint.ts';
import { CheckpointMoved, ProjectionHalted } from './faults.ts';
import { buildLock, createGeneration, dropGeneration, makeLive, switchLive } from './generations.ts';
import type { Projection } from './projection.ts';
import { createRunnerTables, type Generation } from './tables.ts';
import { serialized } from './transaction.ts';
import { GenerationWriter } from './writer.ts';

export interface BuildContext {
  readonly pool: Pool;
  readonly events: EventStore;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly log: Log;
}

/** Attempts to begin a build. Internal: only another runner can replace a generation. */
const ATTEMPTS_MAX = 5;

/** A generation under construction, on a connection of its own. */
export interface Build {
  readonly generation: Generation;
  /** The generation that was live when the build began, 0 for none. */
  readonly replaces: number;
  readonly client: PoolClient;
  readonly writer: GenerationWriter;
}

/** Creates an empty generation under the build lock; drops it afterwards unless `work` returns `keep: true`. */
export async function withBuild<Result>(
  context: BuildContext,
  projection: Projection,
  work: (build: Build) => Promise<{ readonly keep: boolean; readonly result: Result }>,
): Promise<Result> {
  const client = await context.pool.connect();
  let broken: Error | null = null;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    await createRunnerTables(client);
    const { rows } = await client.query<{ taken: boolean }>({
      text: `SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken`,
      values: [buildLock(projection)],
    });
    if (rows[0]?.taken !== true) throw new ProjectionHalted(`${projection.name} is being built by another process`);
    await client.query('SET synchronous_commit = off');
    const { generation, replaces } = await createGeneration(client, projection);
    let keep = false;
    try {
      const writer = await openWriter(context, generation, client);
      const done = await work({ generation, replaces, client, writer });
      keep = done.keep;
      return done.result;
    } finally {
      if (!keep && broken === null) await dropGeneration(client, generation);
    }
  } finally {
    client.off('error', onError);
    // The server ends a closed connection some time later: unlock now, so that the next build finds the lock free.
    if (broken === null) await client.query('SELECT pg_advisory_unlock_all()');
    // Destroying the connection discards the session's settings.
    client.release(true);
  }
}

function openWriter(
  { events, complete, log }: BuildContext,
  generation: Generation,
  connection: PoolClient,
): Promise<GenerationWriter> {
  const about = { projection: generation.projection.name, generation: generation.number };
  return GenerationWriter.open({
    connection: serialized(connection),
    generation,
    events,
    complete,
    checkpoint: { position: LOG_START, last: null },
    patient: true,
    movePosition: moveCheckpoint,
    hooks: {
      advanced: () => undefined,
      parked: ({ stream, revision }, fault) =>
        log.error({ ...about, stream, revision, fault }, 'A rebuild could not apply an event'),
    },
  });
}

/** Applies the log up to exactly `target`, a position that the log has reached and that lies between two appends. */
export async function buildUpTo(
  { events }: BuildContext,
  { writer, generation }: Build,
  target: LogPosition,
): Promise<void> {
  if (writer.position >= target) return;
  let reached: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const subscription = events.subscribe({
    after: writer.position,
    categories: generation.projection.categories,
    onEvents: async (batch, position, lastRecord) => {
      if (writer.position >= target) return;
      const due = throughPosition(batch, target);
      const reachedBy = due.at(-1)?.position ?? target;
      // Exceeds the target only if the target is inside an append, as a program before this one may have left it.
      await writer.apply(due, position < target ? position : reachedBy > target ? reachedBy : target, lastRecord);
      if (writer.position >= target) reached();
    },
  });
  try {
    await Promise.race([done, subscription.closed]);
  } finally {
    await Promise.allSettled([subscription.close()]);
  }
}

/** Builds the model again from the log and makes that generation live in one step. */
export function rebuild(context: BuildContext, projection: Projection): Promise<LogPosition> {
  return withBuild(context, projection, async (build) => {
    for (let attempt = 1; ; attempt += 1) {
      await buildUpTo(context, build, await context.events.head());
      try {
        await goLive(context, build);
        return { keep: true, result: build.writer.position };
      } catch (error) {
        // Just before, a runner created the first generation or replaced one that was lost.
        if (!(error instanceof CheckpointMoved) || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  });
}

async function goLive(context: BuildContext, build: Build): Promise<void> {
  const { generation, client } = build;
  const live = await readLiveState(client, generation.projection);
  if (live === null) {
    await makeLive(client, generation, build.replaces);
    return;
  }
  const locking = await context.pool.connect();
  try {
    // By now the log has few events that the build lacks, and the lock keeps the live generation still until they are
    // applied.
    await switchLive(locking, generation, live, async (position) => {
      // A live generation ahead of the log was built from another log, or from a tail of this one that was lost.
      const head = await context.events.head();
      await buildUpTo(context, build, position < head ? position : head);
    });
    locking.release();
  } catch (error) {
    locking.release(true);
    throw error;
  }
}
