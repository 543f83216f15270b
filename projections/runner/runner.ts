/**
 * The runner of the read models: one for each process, all of them together keep every model current.
 *
 * Must stay true: any number of processes may run one; per model one of them writes, and each can tell its
 * readers when a position of the log has become visible.
 */
import type { Pool } from 'pg';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { type BuildContext, rebuild } from './build.ts';
import { describeFault } from './faults.ts';
import { setHalted } from './generations.ts';
import { leadWhenever } from './lead.ts';
import { listParked, type ParkedStream, requestReplay } from './parking.ts';
import { Progress } from './progress.ts';
import type { Projection } from './projection.ts';
import { createSharedMoves } from './shared-moves.ts';
import { createRunnerTables } from './tables.ts';
import { type Verification, verify } from './verify.ts';

export interface ProjectionRunnerOptions {
  readonly events: EventStore;
  /** Gives a connection to each model that this process leads, one to each rebuild, and some for a moment. */
  readonly database: Pool;
  readonly models: readonly Projection[];
  /** Puts back what an event leaves to other streams: `withUpdatesInPlace`. */
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly log: Log;
  readonly metrics?: ProjectionMetrics;
  /** How soon a process notices that a model has no runner any more, and a parked stream that may be tried. */
  readonly intervalMs?: number;
}

/** What is counted; each call follows a commit. */
export interface ProjectionMetrics {
  applied(model: string, position: LogPosition, events: number, durationMs: number): void;
  parked(model: string): void;
  halted(model: string): void;
}

export interface ProjectionRunner {
  /**
   * Creates what is missing and, unless told not to lead, begins to keep the models current; resolves once their
   * tables can be asked. One that does not lead only tells its readers how far the others have come.
   */
  start(options?: { readonly lead: boolean }): Promise<void>;
  /** Resolves when nothing is written any more. */
  close(): Promise<void>;
  /**
   * Resolves when every model that is not halted, or each of those named, shows the position; rejects with
   * `read-model-behind` in time.
   */
  waitFor(position: LogPosition, timeoutMs: number, models?: readonly string[]): Promise<void>;
  /** How far the model is, as this process knows: no further than the database, unless that lost its last commits. */
  known(model: string): LogPosition;
  /** The database showed an older position than is known: a crash took commits that were not on its disk yet. */
  wentBack(model: string, position: LogPosition): void;
  /** Builds a model, or each of them, anew from the log and puts it in the old one's place; works unstarted too. */
  rebuild(model: string | null): Promise<void>;
  /** Builds each model, or one, anew beside the live one, compares row by row, and drops what it built. */
  verify(model: string | null): Promise<readonly Verification[]>;
  /** Streams that were set aside, in all models; works unstarted too. */
  parked(): Promise<readonly ParkedStream[]>;
  /**
   * Asks the running process to try parked streams again, all or one, of every model or one, and halted models too.
   * Returns how many streams, each model's counted apart.
   */
  replay(stream: string | null, model?: string | null): Promise<number>;
}

const INTERVAL_MS = 1_000;

export function createProjectionRunner(options: ProjectionRunnerOptions): ProjectionRunner {
  const { events, database: pool, models, complete, log, metrics } = options;
  const ending = new AbortController();
  const progress = new Progress({
    database: pool,
    projections: models,
    onFault: (error) => log.warn({ fault: describeFault(error) }, 'The positions of the read models cannot be read'),
  });
  const movePosition = createSharedMoves();
  let leading: readonly Promise<void>[] = [];
  const context: BuildContext = { pool, events, complete, log };
  const chosen = (model: string | null): readonly Projection[] => {
    const found = models.filter(({ name }) => model === null || name === model);
    if (found.length === 0) throw new TypeError(`No model is called ${model}`);
    return found;
  };

  function leadModel(projection: Projection): Promise<void> {
    const { name } = projection;
    return leadWhenever({
      ...{ projection, pool, events, complete, progress, movePosition, log },
      intervalMs: options.intervalMs ?? INTERVAL_MS,
      signal: ending.signal,
      hooks: {
        applied: (position, batch) => metrics?.applied(name, position, batch.events, batch.durationMs),
        halted: () => metrics?.halted(name),
        parked: ({ stream, revision }, fault, retry) => {
          const about = { projection: name, stream, revision, fault };
          if (retry === 'soon') {
            log.info(about, 'An event takes long: its stream is applied beside the others');
            return;
          }
          log.error(about, 'An event could not be applied: its stream is parked');
          metrics?.parked(name);
        },
      },
    });
  }

  return {
    async start({ lead } = { lead: true }) {
      await createTables(pool);
      if (lead) leading = models.map(leadModel);
    },
    async close() {
      ending.abort();
      progress.close();
      await Promise.all(leading);
    },
    waitFor: (position, timeoutMs, names) => progress.waitFor(position, timeoutMs, names),
    known: (model) => progress.position(model),
    wentBack: (model, position) => progress.at(model, position, null),
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
    async replay(stream, model = null) {
      const asked = chosen(model);
      await createTables(pool);
      for (const projection of asked) await setHalted(pool, projection, null);
      return requestReplay(pool, asked, stream);
    },
  };
}

/** On one connection, since it is a transaction. */
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
