/**
 * Keeps one model current while this process holds the model's lock: one node of all leads a model.
 *
 * Invariants: the lock belongs to the connection that writes, so a runner whose connection died cannot write any
 * more. If two runners ever write at the same time, the checkpoint lets only one of them commit.
 */
import type { Pool } from 'pg';
import { aborted } from '../../core/kernel/aborted.ts';
import { LOG_START, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { Pause } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { HeldLead, TakeLead } from '../../core/ports/lead.ts';
import type { Log } from '../../core/ports/log.ts';
import { leadWhenever } from '../../core/runtime/lead-whenever.ts';
import { checkAgainstLog, type LiveState, readLiveState } from './checkpoint.ts';
import { describeFault, faultKind, ProjectionHalted } from './faults.ts';
import { createGeneration, dropUnused, type IsModelRead, leadLock, makeLive, setHalted } from './generations.ts';
import { LongReplays } from './long-replays.ts';
import type { Progress } from './progress.ts';
import type { Projection, Queryable } from './projection.ts';
import type { MovePosition } from './shared-moves.ts';
import { createRunnerTables, tablesExist } from './tables.ts';
import { GenerationWriter, type WriterHooks } from './writer.ts';

export interface LeadOptions {
  readonly projection: Projection;
  readonly pool: Pool;
  readonly takeLead: TakeLead<Queryable>;
  readonly events: EventStore;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly progress: Progress;
  /** All models that this process leads share it. */
  readonly movePosition: MovePosition;
  readonly isRead: IsModelRead;
  readonly pause: Pause;
  readonly log: Log;
  readonly hooks: Omit<WriterHooks, 'advanced'> & {
    readonly applied: WriterHooks['advanced'];
    readonly halted: (reason: string) => void;
  };
  /** How often parked streams are checked for a retry; also, up to a limit, how often a standby tries to lead. */
  readonly intervalMs: number;
  /** Aborted when the runner closes. */
  readonly signal: AbortSignal;
}

/** The longest pause between two attempts of a standby to lead. Internal: it is the pace of attempts. */
const STANDBY_INTERVAL_MS_MAX = 250;
/** The pause before the live generation is read again, after another process changed it. */
const STALE_PAUSE_MS = 20;
/** How long a batch that is under way may take after the runner closes. */
const CLOSE_GRACE_MS = 3_000;

/** Runs until the signal; resolves when nothing is written any more. */
export function leadModel(options: LeadOptions): Promise<void> {
  const { projection, takeLead, intervalMs, pause, log, signal } = options;
  return leadWhenever({
    take: () => takeLead(leadLock(projection)),
    work: (held, onWorking) => leadUntilClosed(options, held, onWorking),
    standbyMs: Math.min(intervalMs, STANDBY_INTERVAL_MS_MAX),
    pause,
    onFault: (error) =>
      log.error(
        { projection: projection.name, fault: describeFault(error) },
        'A read model lost its runner; the runner starts again',
      ),
    signal,
  });
}

/**
 * Leads on a connection. After the runner closes, a batch that is under way has `CLOSE_GRACE_MS` to finish; after that
 * PostgreSQL rolls it back, and the next leader applies it again.
 */
async function leadUntilClosed(options: LeadOptions, held: HeldLead<Queryable>, onWorking: () => void): Promise<void> {
  const { signal } = options;
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(held.release, CLOSE_GRACE_MS);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await lead(options, held.connection, { lost: rejectionOf(held.lost), onWorking });
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  }
}

/** Returns a promise that rejects with the signal's reason as soon as the signal is aborted. */
function rejectionOf(signal: AbortSignal): Promise<never> {
  const rejected = aborted(signal).then((): never => {
    throw signal.reason;
  });
  rejected.catch(() => undefined);
  return rejected;
}

interface Leading {
  /** Rejects as soon as the connection is lost. */
  readonly lost: Promise<never>;
  /** Called when the model is being kept current. */
  readonly onWorking: () => void;
}

async function lead(options: LeadOptions, connection: Queryable, leading: Leading): Promise<void> {
  const { projection, progress, signal, pause, log, hooks } = options;
  // The log supplies lost checkpoints and rows again, so commits need not wait for the disk.
  await connection.query({ text: 'SET synchronous_commit = off' });
  while (!signal.aborted) {
    try {
      const state = await liveState(options, connection);
      await followLog(options, connection, state, leading);
    } catch (error) {
      const kind = faultKind(error);
      if (kind === 'outage') throw error;
      if (kind === 'stale') {
        log.warn(
          { projection: projection.name, fault: describeFault(error) },
          'Another process changed a read model while it was written',
        );
        await pause(STALE_PAUSE_MS, signal);
        continue;
      }
      const reason = describeFault(error);
      await setHalted(connection, projection, reason);
      progress.setPosition(projection.name, progress.position(projection.name), reason);
      hooks.halted(reason);
      log.error({ projection: projection.name, fault: reason }, 'A read model halted; an operator must act');
      await waitWhileHalted(options, connection);
    } finally {
      progress.setWriter(projection.name, null);
    }
  }
}

/**
 * Reads the live generation. If there is none, or its tables were dropped, creates one that starts at the log's start.
 */
async function liveState({ projection, events, log }: LeadOptions, connection: Queryable): Promise<LiveState> {
  await createRunnerTables(connection);
  const state = await readLiveState(connection, projection);
  if (state !== null && (await tablesExist(connection, state.tables))) return state;
  const { generation, replaces } = await createGeneration(connection, projection);
  await makeLive(connection, generation, replaces);
  const about = { projection: projection.name, generation: generation.number };
  // There is nothing to build of an empty log.
  const isEmpty = (await events.readAll(LOG_START, 1)).length === 0;
  if (isEmpty) log.debug(about, 'A read model begins with an empty log');
  else log.info(about, 'A read model is built from the start of the log');
  const created = await readLiveState(connection, projection);
  if (created === null) throw new ProjectionHalted(`${projection.name} vanished while it was created`);
  return created;
}

async function followLog(
  options: LeadOptions,
  connection: Queryable,
  state: LiveState,
  { lost, onWorking }: Leading,
): Promise<void> {
  const { projection, events, progress, hooks, signal } = options;
  await checkAgainstLog(events, projection, state.checkpoint);
  // The cause of the halt may have been fixed; if not, the model halts again at the same event.
  if (state.halted !== null) await setHalted(connection, projection, null);
  const generation = { projection, number: state.generation };
  const advanced: WriterHooks['advanced'] = (position, batch) => {
    progress.setPosition(projection.name, position, null);
    hooks.applied(position, batch);
  };
  const { complete, movePosition } = options;
  const writer = await GenerationWriter.open({
    connection,
    generation,
    checkpoint: state.checkpoint,
    events,
    complete,
    movePosition,
    patient: false,
    hooks: {
      advanced,
      parked: (event, fault, retry) => {
        hooks.parked(event, fault, retry);
        // Nothing is wrong with the event: it only takes too long to apply while other streams wait.
        if (retry === 'soon') replays.begin(event.stream);
      },
    },
  });
  const replays = new LongReplays({ pool: options.pool, generation, writer, events, complete, log: options.log });
  const subscription = events.subscribe({
    after: state.checkpoint.position,
    categories: projection.categories,
    // Whoever waits for the model pulls.
    lingers: true,
    onEvents: (batch, position, lastRecord) => writer.apply(batch, position, lastRecord),
  });
  progress.setPosition(projection.name, state.checkpoint.position, null);
  progress.setWriter(projection.name, (position) => subscription.pull(position));
  const ending = new AbortController();
  const maintenance = runMaintenance(
    { ...options, signal: AbortSignal.any([signal, ending.signal]) },
    writer,
    replays,
    onWorking,
  );
  try {
    await Promise.race([subscription.closed, lost, maintenance]);
  } finally {
    ending.abort();
    // Both promises end for the same reason as the race, whose error the caller already receives. A batch without its
    // connection cannot write any more, so nobody waits for what it still reads.
    const gone = lost.catch(() => undefined);
    await Promise.race([Promise.allSettled([subscription.close(), maintenance, replays.close()]), gone]);
  }
}

/** Until the signal: retries parked streams that are due and, after catching up, drops generations that nobody uses. */
async function runMaintenance(
  { projection, pool, events, isRead, intervalMs, pause, log, signal }: LeadOptions,
  writer: GenerationWriter,
  replays: LongReplays,
  onWorking: () => void,
): Promise<void> {
  const head = await events.head();
  let swept = false;
  while (!signal.aborted) {
    if (!swept && writer.position >= head) swept = await dropUnused(pool, projection, isRead);
    for (const [stream, replayed] of await writer.retryParked((stream) => replays.isRunning(stream))) {
      if (replayed === 'long') replays.begin(stream);
      else log.info({ projection: projection.name, stream, replayed }, 'A parked stream was retried');
    }
    onWorking();
    await pause(intervalMs, signal);
  }
}

/** Waits until an operator rebuilt the halted generation or requested another try. */
async function waitWhileHalted(
  { projection, intervalMs, pause, signal }: LeadOptions,
  connection: Queryable,
): Promise<void> {
  const halted = await readLiveState(connection, projection);
  while (!signal.aborted) {
    await pause(intervalMs, signal);
    const state = await readLiveState(connection, projection);
    if (state === null || state.generation !== halted?.generation || state.halted === null) return;
  }
}
