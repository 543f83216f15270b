/**
 * The runner of the read models: one per process, and together they keep every model current.
 *
 * Invariants: any number of processes may run one. Each model has one writer among them, and each process can tell
 * its readers when a position of the log has become visible.
 */
import type { Pool } from 'pg';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import type { Pause } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { TakeLead } from '../../core/ports/lead.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Tracing } from '../../core/ports/tracing.ts';
import { type BuildContext, rebuild } from './build.ts';
import { describeFault } from './faults.ts';
import { type IsModelRead, setHalted } from './generations.ts';
import { leadModel } from './lead.ts';
import { listParked, type ModelFigures, type ParkedStream, readModelFigures, requestReplay } from './parking.ts';
import { Progress } from './progress.ts';
import type { Projection, Queryable } from './projection.ts';
import { createSharedMoves } from './shared-moves.ts';
import { createRunnerTables } from './tables.ts';
import { type Verification, verify } from './verify.ts';

export interface ProjectionRunnerOptions {
  readonly events: EventStore;
  /** Lends one connection to each rebuild, and connections for short work. */
  readonly database: Pool;
  /** Lends a connection to each model that this process leads. */
  readonly takeLead: TakeLead<Queryable>;
  readonly models: readonly Projection[];
  /** Returns the event with the data that it keeps in other streams: `withUpdatesInPlace`. */
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly pause: Pause;
  readonly log: Log;
  readonly metrics?: ProjectionMetrics;
  /** Is told of each batch, after its commit. */
  readonly tracing?: Pick<Tracing, 'applied'>;
  /**
   * Says whether a process reads the model in a version that is older than this program's, which then stays. Without it
   * only a writer of that version keeps it.
   */
  readonly isRead?: IsModelRead;
  /** The longest time until a process notices that a model has no writer, or that a parked stream may be retried. */
  readonly intervalMs?: number;
}

/** Counters; each method is called after a commit. */
export interface ProjectionMetrics {
  applied(model: string, position: LogPosition, events: number, durationMs: number): void;
  parked(model: string): void;
  halted(model: string): void;
}

export interface ProjectionRunner {
  /**
   * Creates missing tables and, unless `lead` is false, begins to keep the models current. Resolves when the tables can
   * be queried. A process that does not lead only tracks how far the others are. `models`: only these are led.
   */
  start(options?: { readonly lead: boolean; readonly models?: readonly string[] }): Promise<void>;
  /** Resolves when this process writes nothing any more. */
  close(): Promise<void>;
  /**
   * Resolves when every model, or every one of `models`, has reached the position or is halted. Rejects with
   * `read-model-behind` after `timeoutMs`.
   */
  waitFor(position: LogPosition, timeoutMs: number, models?: readonly string[]): Promise<void>;
  /**
   * The model's position as far as this process knows: never ahead of the database, unless that lost its last commits.
   */
  knownPosition(model: string): LogPosition;
  /**
   * Reports that the database returned an older position than the known one: a crash lost commits not yet on its disk.
   */
  positionWentBack(model: string, position: LogPosition): void;
  /** Builds one model, or each, again from the log and replaces the live generation; also works before `start`. */
  rebuild(model: string | null): Promise<void>;
  /** Builds one model, or each, beside the live one, compares row by row, and drops the build. */
  verify(model: string | null): Promise<readonly Verification[]>;
  /** Lists the parked streams of all models; also works before `start`. */
  parked(): Promise<readonly ParkedStream[]>;
  /** Returns how far each model is, and how many of its parked streams wait for an operator, in one query. */
  figures(): Promise<readonly ModelFigures[]>;
  /**
   * Requests that the leading process retry parked streams (all, or `stream`) of every model or of `model`, and clears
   * the halt of those models. Returns how many streams; a stream counts once for each model.
   */
  replay(stream: string | null, model?: string | null): Promise<number>;
}

const INTERVAL_MS = 1_000;

export function createProjectionRunner(options: ProjectionRunnerOptions): ProjectionRunner {
  const { events, database: pool, models, complete, log } = options;
  const ending = new AbortController();
  const progress = new Progress({
    database: pool,
    projections: models,
    onFault: (error) => log.warn({ fault: describeFault(error) }, 'The positions of the read models cannot be read'),
  });
  const lead = leader(options, progress, ending.signal);
  let leading: readonly Promise<void>[] = [];
  return {
    async start({ lead: leads, models: wanted } = { lead: true }) {
      await createTables(pool);
      if (leads) leading = models.filter(({ name }) => wanted?.includes(name) ?? true).map(lead);
    },
    async close() {
      ending.abort();
      progress.close();
      await Promise.all(leading);
    },
    waitFor: (position, timeoutMs, names) => progress.waitFor(position, timeoutMs, names),
    knownPosition: (model) => progress.position(model),
    positionWentBack: (model, position) => progress.setPosition(model, position, null),
    ...operations({ pool, events, complete, log }, models),
  };
}

/**
 * Returns the function that keeps one model current until the signal, as its writer or on standby for another process.
 */
function leader(
  options: ProjectionRunnerOptions,
  progress: Progress,
  signal: AbortSignal,
): (projection: Projection) => Promise<void> {
  const { events, database: pool, takeLead, complete, pause, log, metrics, tracing } = options;
  const { intervalMs = INTERVAL_MS, isRead = async () => false } = options;
  const movePosition = createSharedMoves();
  const shared = { pool, takeLead, events, complete, progress, movePosition, isRead, pause, log, intervalMs, signal };
  return (projection) => {
    const { name } = projection;
    return leadModel({
      ...shared,
      projection,
      hooks: {
        applied: (position, { events: applied, durationMs }) => {
          metrics?.applied(name, position, applied.length, durationMs);
          tracing?.applied(name, applied, durationMs);
        },
        halted: () => metrics?.halted(name),
        parked: ({ stream, revision }, fault, retry) => {
          const about = { projection: name, stream, revision, fault };
          if (retry === 'soon') {
            log.info(about, 'An event takes long: its stream is replayed beside the others');
            return;
          }
          log.error(about, 'An event could not be applied: its stream is parked');
          metrics?.parked(name);
        },
      },
    });
  };
}

/** The operations that operators request; they work whether or not the runner was started. */
function operations(
  context: BuildContext,
  models: readonly Projection[],
): Pick<ProjectionRunner, 'rebuild' | 'verify' | 'parked' | 'figures' | 'replay'> {
  const { pool, log } = context;
  const chosen = (model: string | null): readonly Projection[] => {
    const found = models.filter(({ name }) => model === null || name === model);
    if (found.length === 0) throw new TypeError(`No model is called ${model}`);
    return found;
  };
  return {
    async rebuild(model) {
      for (const projection of chosen(model)) {
        const position = await rebuild(context, projection);
        log.info({ projection: projection.name, position: String(position) }, 'A read model was rebuilt');
      }
    },
    async verify(model) {
      const results: Verification[] = [];
      for (const projection of chosen(model)) results.push(await verify(context, projection));
      return results;
    },
    async parked() {
      await createTables(pool);
      return listParked(pool, models);
    },
    figures: () => readModelFigures(pool, models),
    async replay(stream, model = null) {
      const chosenModels = chosen(model);
      await createTables(pool);
      for (const projection of chosenModels) await setHalted(pool, projection, null);
      return requestReplay(pool, chosenModels, stream);
    },
  };
}

/** Uses one connection, because the creation is one transaction. */
async function createTables(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await createRunnerTables(client);
    client.release();
  } catch (error) {
    client.release(true);
    throw error;
  }
}
