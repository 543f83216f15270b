/** Composes the read models and their runner. */
import type { Logger } from 'pino';
import { pause } from '../../adapters/node/pause.ts';
import { createTakeLead } from '../../adapters/postgres/lead.ts';
import { createPool, figuresOf, type PoolFigures } from '../../adapters/postgres/pool.ts';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { OverdueTimers, Timers } from '../../core/ports/workflows.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import { createModels } from '../../projections/models.ts';
import { type AllReadModels, createReadModels } from '../../projections/read-models.ts';
import {
  createProjectionRunner,
  type ProjectionRunner,
  type ProjectionRunnerOptions,
} from '../../projections/runner/runner.ts';
import { createTimers } from '../../projections/workflow-timers/queries.ts';
import type { Foundation } from './foundation.ts';
import { WORKFLOWS } from './workflows.ts';

/** A long history is written in one transaction, and a verification reads one snapshot until it is done. */
const STATEMENT_SPAN_MS = 10 * 60_000;
const TRANSACTION_SPAN_MS = 6 * 60 * 60_000;

export interface ComposedProjections {
  /** Not yet started. */
  readonly runner: ProjectionRunner;
  readonly readModels: AllReadModels;
  readonly timers: Timers & OverdueTimers;
  /** The pool that the models are written with. */
  poolFigures(): PoolFigures;
  /** The models' names. */
  readonly models: readonly string[];
  /** Lists this process as one that reads the models; called before it reads them. */
  list(): Promise<void>;
  /** For a command: waits until it has the connections of its runner. */
  reserve(): Promise<void>;
  /** Stops the runner and ends its connections. */
  close(): Promise<void>;
}

export function composeProjections(
  { context, pool, connectionString, connections, runningProcess }: Foundation,
  objects: ObjectDatabase,
  log: Logger,
  watched: Pick<ProjectionRunnerOptions, 'metrics' | 'tracing'> = {},
): ComposedProjections {
  const { digest } = context;
  const complete = (event: RecordedEvent): Promise<RecordedEvent> => withUpdatesInPlace(context, event);
  const models = createModels({ objects, events: context.events, complete, workflows: WORKFLOWS, digest });
  const { modelsMax: connectionsMax } = connections;
  const spans = { statementSpanMs: STATEMENT_SPAN_MS, transactionSpanMs: TRANSACTION_SPAN_MS };
  // A pool of its own, so that readers and writers never wait for each other's connections.
  const database = createPool({ connectionString, log, connectionsMax, ...spans });
  const runner = createProjectionRunner({
    events: context.events,
    database,
    takeLead: createTakeLead(database),
    models: Object.values(models),
    complete,
    pause,
    log,
    isRead: runningProcess.isModelRead,
    ...watched,
  });
  const readModels = createReadModels({ database: pool, models, runner, clock: context.clock, digest });
  const timers = createTimers({ database: pool, projection: models.timers, runner });
  const close = async (): Promise<void> => {
    await runner.close();
    await database.end();
  };
  return {
    list: () =>
      runningProcess.readsModels(Object.fromEntries(Object.values(models).map(({ name, version }) => [name, version]))),
    reserve: () => connections.reserve(database),
    runner,
    readModels,
    timers,
    poolFigures: () => figuresOf(database),
    models: Object.values(models).map(({ name }) => name),
    close,
  };
}
