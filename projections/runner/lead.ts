/**
 * Keeps one model current while this process holds its lock: the one active runner among all nodes.
 *
 * Must stay true: the lock lives on the connection that writes, so a runner whose connection died can write no
 * more; and should two ever write, the checkpoint lets only one of them commit. A process that froze, or whose
 * machine vanished, loses the lock too: PostgreSQL ends a leading session that is silent for too long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { checkAgainstLog, type LiveState, readLiveState } from './checkpoint.ts';
import { describeFault, faultKind, ProjectionHalted } from './faults.ts';
import { createGeneration, dropUnused, leadLock, makeLive, setHalted } from './generations.ts';
import { LongReplays } from './long-replays.ts';
import type { Progress } from './progress.ts';
import type { Projection, Queryable } from './projection.ts';
import type { MovePosition } from './shared-moves.ts';
import { createRunnerTables, tablesExist } from './tables.ts';
import { oneAtATime } from './transaction.ts';
import { GenerationWriter, type WriterHooks } from './writer.ts';

export interface LeadOptions {
  readonly projection: Projection;
  readonly pool: Pool;
  readonly events: EventStore;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly progress: Progress;
  /** Shared by all models that this process leads. */
  readonly movePosition: MovePosition;
  readonly log: Log;
  readonly hooks: Omit<WriterHooks, 'advanced'> & {
    readonly applied: (position: LogPosition, batch: { readonly events: number; readonly durationMs: number }) => void;
    readonly halted: (reason: string) => void;
  };
  /** How often parked streams are looked at, and how often a node that does not lead tries to, within a bound. */
  readonly intervalMs: number;
  /** Aborted when the runner closes. */
  readonly signal: AbortSignal;
}

/**
 * A leading session says something this often, and PostgreSQL ends one that was silent for the span: readers, who
 * wait for READ_WAIT_MS at most, then find another leader in time.
 */
const SIGN_OF_LIFE_MS = 500;
const SILENCE_SPAN_MS = 3_000;
/** How often a node that does not lead tries to, at the least. */
const STANDBY_INTERVAL_MS_MAX = 250;
const OUTAGE_PAUSE_FIRST_MS = 50;
const OUTAGE_PAUSE_LAST_MS = 5_000;
const VOID_PAUSE_MS = 20;
/** How long a batch under way may take once the runner closes. */
const CLOSE_SPAN_MS = 3_000;

/** Runs until the signal; resolves when nothing is written any more. */
export async function leadWhenever(options: LeadOptions): Promise<void> {
  const { projection, signal, log, intervalMs } = options;
  let pauseMs = OUTAGE_PAUSE_FIRST_MS;
  while (!signal.aborted) {
    try {
      const client = await takeLead(options);
      if (client === null) {
        await pause(Math.min(intervalMs, STANDBY_INTERVAL_MS_MAX), signal);
        continue;
      }
      await withClient(client, signal, (connection, lost) => lead(options, connection, lost));
      pauseMs = OUTAGE_PAUSE_FIRST_MS;
    } catch (error) {
      if (signal.aborted) break;
      log.error(
        { projection: projection.name, fault: describeFault(error) },
        'A read model lost its runner; it starts anew',
      );
      await pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, OUTAGE_PAUSE_LAST_MS);
    }
  }
}

/**
 * The lock, and with it, at once, the bounds of a leading session's silence: inside a transaction and outside.
 * PostgreSQL before 14 has none for the latter.
 */
const TAKE_LEAD = `
  SELECT taken, CASE WHEN taken THEN (
    SELECT count(set_config(name, $2, false)) FROM pg_settings
    WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout')
  ) END AS bounded
  FROM (SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken) AS tried`;

/** A connection that holds the model's lock, or null when another node's does. */
async function takeLead({ projection, pool }: LeadOptions): Promise<PoolClient | null> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ taken: boolean }>({
      text: TAKE_LEAD,
      values: [leadLock(projection), String(SILENCE_SPAN_MS)],
    });
    if (rows[0]?.taken === true) return client;
  } catch (error) {
    client.release(true);
    throw error;
  }
  client.release();
  return null;
}

/** Ends the connection afterwards, and with it the lock and the session's settings. */
async function withClient(
  client: PoolClient,
  signal: AbortSignal,
  work: (connection: Queryable, lost: Promise<never>) => Promise<void>,
): Promise<void> {
  let onLost: (error: Error) => void = () => undefined;
  const lost = new Promise<never>((_resolve, reject) => {
    onLost = reject;
  });
  lost.catch(() => undefined);
  const onEnd = (): void => onLost(new Error('Connection terminated under a read model'));
  client.on('error', onLost);
  client.on('end', onEnd);
  let released = false;
  const release = (): void => {
    if (!released) client.release(true);
    released = true;
  };
  // A batch that takes long is rolled back and applied again after the next start.
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(release, CLOSE_SPAN_MS);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  const connection = oneAtATime(client);
  const endSignsOfLife = giveSignsOfLife(connection);
  try {
    await work(connection, lost);
  } finally {
    endSignsOfLife();
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
    release();
  }
}

/** Says something between the statements of the work, which may reckon for long. The end of it is returned. */
function giveSignsOfLife(connection: Queryable): () => void {
  let unanswered = false;
  const timer = setInterval(() => {
    if (unanswered) return;
    unanswered = true;
    // That the connection was lost, the client tells by itself.
    const answered = (): void => void (unanswered = false);
    connection.query({ text: 'SELECT 1' }).then(answered, answered);
  }, SIGN_OF_LIFE_MS);
  return () => clearInterval(timer);
}

async function lead(options: LeadOptions, connection: Queryable, lost: Promise<never>): Promise<void> {
  const { projection, progress, signal, log, hooks } = options;
  // A lost tail of checkpoints is applied again from the log, so commits need not wait for the disk.
  await connection.query({ text: 'SET synchronous_commit = off' });
  while (!signal.aborted) {
    try {
      const state = await liveState(options, connection);
      await followLog(options, connection, state, lost);
    } catch (error) {
      const kind = faultKind(error);
      if (kind === 'outage') throw error;
      if (kind === 'void') {
        log.warn({ projection: projection.name, fault: describeFault(error) }, 'A read model changed under its runner');
        await pause(VOID_PAUSE_MS, signal);
        continue;
      }
      const reason = describeFault(error);
      await setHalted(connection, projection, reason);
      progress.at(projection.name, progress.position(projection.name), reason);
      hooks.halted(reason);
      log.error({ projection: projection.name, fault: reason }, 'A read model halted; an operator must act');
      await untilReleased(options, connection);
    } finally {
      progress.writing(projection.name, null);
    }
  }
}

/** What is live now; the first generation, or one in place of tables that were dropped, starts at the log's start. */
async function liveState({ projection, log }: LeadOptions, connection: Queryable): Promise<LiveState> {
  await createRunnerTables(connection);
  const state = await readLiveState(connection, projection);
  if (state !== null && (await tablesExist(connection, state.tables))) return state;
  const { generation, replaces } = await createGeneration(connection, projection);
  await makeLive(connection, generation, replaces);
  log.info(
    { projection: projection.name, generation: generation.number },
    'A read model is built from the start of the log',
  );
  const created = await readLiveState(connection, projection);
  if (created === null) throw new ProjectionHalted(`${projection.name} vanished while it was created`);
  return created;
}

async function followLog(
  options: LeadOptions,
  connection: Queryable,
  state: LiveState,
  lost: Promise<never>,
): Promise<void> {
  const { projection, events, progress, hooks, signal } = options;
  await checkAgainstLog(events, projection, state.checkpoint);
  // What halted it may have been mended; if not, it halts again at the same event.
  if (state.halted !== null) await setHalted(connection, projection, null);
  const generation = { projection, number: state.generation };
  const advanced: WriterHooks['advanced'] = (position, batch) => {
    progress.at(projection.name, position, null);
    hooks.applied(position, batch);
  };
  const { complete, movePosition } = options;
  const writer = await GenerationWriter.open({
    connection,
    ...{ generation, checkpoint: state.checkpoint, events, complete, movePosition, patient: false },
    hooks: {
      advanced,
      parked: (event, fault, retry) => {
        hooks.parked(event, fault, retry);
        // Nothing is wrong with it: it only could not be done while others wait.
        if (retry === 'soon') replays.begin(event.stream);
      },
    },
  });
  const replays = new LongReplays({ pool: options.pool, generation, writer, events, complete, log: options.log });
  const subscription = events.subscribe({
    after: state.checkpoint.position,
    categories: projection.categories,
    onEvents: (batch, position) => writer.apply(batch, position),
  });
  progress.at(projection.name, state.checkpoint.position, null);
  progress.writing(projection.name, () => subscription.pull());
  const ending = new AbortController();
  const chores = keepHouse(options, writer, replays, AbortSignal.any([signal, ending.signal]));
  try {
    await Promise.race([subscription.closed, lost, chores]);
  } finally {
    ending.abort();
    // Both end by the same cause as the race, which is already on its way to the caller. Without its connection
    // a batch under way can write nothing any more, so nobody waits for what it still reads.
    const gone = lost.catch(() => undefined);
    await Promise.race([Promise.allSettled([subscription.close(), chores, replays.close()]), gone]);
  }
}

/** Until the signal: tries parked streams whose time has come, and drops what no longer serves once caught up. */
async function keepHouse(
  { projection, pool, events, intervalMs, log }: LeadOptions,
  writer: GenerationWriter,
  replays: LongReplays,
  signal: AbortSignal,
): Promise<void> {
  const head = await events.head();
  let swept = false;
  while (!signal.aborted) {
    if (!swept && writer.position >= head) swept = await dropUnused(pool, projection);
    for (const [stream, replayed] of await writer.retryParked((stream) => replays.isRunning(stream))) {
      if (replayed === 'long') replays.begin(stream);
      else log.info({ projection: projection.name, stream, replayed }, 'A parked stream was tried again');
    }
    await pause(intervalMs, signal);
  }
}

/** Waits until somebody replaced the halted generation or asked for another try. */
async function untilReleased({ projection, intervalMs, signal }: LeadOptions, connection: Queryable): Promise<void> {
  const halted = await readLiveState(connection, projection);
  while (!signal.aborted) {
    await pause(intervalMs, signal);
    const state = await readLiveState(connection, projection);
    if (state === null || state.generation !== halted?.generation || state.halted === null) return;
  }
}

/** Ends early, and without a fault, when the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
