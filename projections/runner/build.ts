/**
 * Builds a generation of a model beside the live one: to replace it, or to compare it with.
 *
 * Must stay true: the live generation is read and written as ever meanwhile; a build that fails, or is cut
 * short, leaves it untouched.
 */
import type { Pool, PoolClient } from 'pg';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { moveCheckpoint, readLiveState } from './checkpoint.ts';
import { CheckpointMoved, ProjectionHalted } from './faults.ts';
import { buildLock, createGeneration, dropGeneration, flip, makeLive } from './generations.ts';
import type { Projection } from './projection.ts';
import { createRunnerTables, type Generation } from './tables.ts';
import { oneAtATime } from './transaction.ts';
import { GenerationWriter } from './writer.ts';

export interface BuildContext {
  readonly pool: Pool;
  readonly events: EventStore;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly log: Log;
}

const ATTEMPTS_MAX = 5;

/** A generation that is being built, on a connection of its own. */
export interface Build {
  readonly generation: Generation;
  /** The generation that was live when it began, 0 for none. */
  readonly replaces: number;
  readonly client: PoolClient;
  readonly writer: GenerationWriter;
}

/** Opens an empty generation under the build lock, and drops it unless the work has made it live. */
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
    if (rows[0]?.taken !== true) throw new ProjectionHalted(`${projection.name} is being built by somebody else`);
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
    // The server ends a connection some time later; whoever builds next should not find the lock still held.
    if (broken === null) await client.query('SELECT pg_advisory_unlock_all()');
    // With the connection go the session's settings.
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
    ...{ connection: oneAtATime(connection), generation, events, complete },
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

/** Applies the log up to exactly a position that it has reached. */
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
    onEvents: async (batch, position) => {
      if (writer.position >= target) return;
      const due = batch.filter((event) => event.position <= target);
      await writer.apply(due, position < target ? position : target);
      if (writer.position >= target) reached();
    },
  });
  try {
    await Promise.race([done, subscription.closed]);
  } finally {
    await Promise.allSettled([subscription.close()]);
  }
}

/** Builds the model anew from the log and makes that generation live in one step. */
export function rebuild(context: BuildContext, projection: Projection): Promise<LogPosition> {
  return withBuild(context, projection, async (build) => {
    for (let attempt = 1; ; attempt += 1) {
      await buildUpTo(context, build, await context.events.head());
      try {
        await takePlace(context, build);
        return { keep: true, result: build.writer.position };
      } catch (error) {
        // A runner created the first generation, or replaced one that was lost, just before.
        if (!(error instanceof CheckpointMoved) || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  });
}

async function takePlace(context: BuildContext, build: Build): Promise<void> {
  const { generation, client } = build;
  const live = await readLiveState(client, generation.projection);
  if (live === null) {
    await makeLive(client, generation, build.replaces);
    return;
  }
  const locking = await context.pool.connect();
  try {
    // What the log gained meanwhile is little by now, and nobody can write the live one until it is applied.
    await flip(locking, generation, live, async (position) => {
      // A live one that is ahead of the log was built from another, or from a tail that was lost.
      const head = await context.events.head();
      await buildUpTo(context, build, position < head ? position : head);
    });
    locking.release();
  } catch (error) {
    locking.release(true);
    throw error;
  }
}
