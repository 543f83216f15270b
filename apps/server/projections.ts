/** Which read models the server keeps, and their runner. */
import type { Logger } from 'pino';
import { createPool } from '../../adapters/postgres/pool.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { DueDeliveries, ReadModels } from '../../core/ports/read-models.ts';
import type { OverdueTimers, Timers } from '../../core/ports/workflows.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/wide-refs.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import {
  createProjectionRunner,
  type ProjectionMetrics,
  type ProjectionRunner,
} from '../../projections/runner/runner.ts';
import { createTimers } from '../../projections/workflow-timers/queries.ts';
import type { Foundation } from './foundation.ts';
import { WORKFLOWS } from './workflows.ts';

/** What the runner holds: a connection to each model, one to a rebuild, one to its snapshot, and some for a moment. */
const SPARE_CONNECTIONS = 4;
/** A long history is written in one transaction; a verification looks at one snapshot for as long as it takes. */
const STATEMENT_SPAN_MS = 10 * 60_000;
const TRANSACTION_SPAN_MS = 6 * 60 * 60_000;

export interface ComposedProjections {
  /** Not yet started. */
  readonly runner: ProjectionRunner;
  readonly readModels: ReadModels & UsageReader & DueDeliveries;
  readonly timers: Timers & OverdueTimers;
  /** The models' names. */
  readonly models: readonly string[];
  /** Stops the runner and ends its connections. */
  close(): Promise<void>;
}

export function composeProjections(
  { context, pool, connectionString }: Foundation,
  objects: ObjectDatabase,
  log: Logger,
  metrics?: ProjectionMetrics,
): ComposedProjections {
  const models = createModels({ objects, events: context.events, workflows: WORKFLOWS });
  const connectionsMax = Object.keys(models).length + SPARE_CONNECTIONS;
  const spans = { statementSpanMs: STATEMENT_SPAN_MS, transactionSpanMs: TRANSACTION_SPAN_MS };
  // Of its own, so that neither readers nor writers ever wait for the other's connections.
  const database = createPool({ connectionString, log, connectionsMax, ...spans });
  const runner = createProjectionRunner({
    events: context.events,
    database,
    models: Object.values(models),
    complete: (event) => withUpdatesInPlace(context, event),
    log,
    ...(metrics === undefined ? {} : { metrics }),
  });
  const readModels = createReadModels({ database: pool, models, runner, clock: context.clock });
  const timers = createTimers({ database: pool, projection: models.timers, runner });
  const close = async (): Promise<void> => {
    await runner.close();
    await database.end();
  };
  return { runner, readModels, timers, models: Object.values(models).map(({ name }) => name), close };
}
