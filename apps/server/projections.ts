/** Which read models the server keeps, and their runner. */
import type { Logger } from 'pino';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { ReadModels } from '../../core/ports/read-models.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import { withUpdatesInPlace } from '../../core/use-cases/wide-refs.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import {
  createProjectionRunner,
  type ProjectionMetrics,
  type ProjectionRunner,
} from '../../projections/runner/runner.ts';
import type { Foundation } from './foundation.ts';

export interface ComposedProjections {
  /** Not yet started. */
  readonly runner: ProjectionRunner;
  readonly readModels: ReadModels & UsageReader;
  /** The models' names. */
  readonly models: readonly string[];
}

export function composeProjections(
  { context, pool }: Foundation,
  objects: ObjectDatabase,
  log: Logger,
  metrics?: ProjectionMetrics,
): ComposedProjections {
  const models = createModels({ objects, events: context.events });
  const runner = createProjectionRunner({
    events: context.events,
    database: pool,
    models: Object.values(models),
    complete: (event) => withUpdatesInPlace(context, event),
    log,
    ...(metrics === undefined ? {} : { metrics }),
  });
  const waitFor: ProjectionRunner['waitFor'] = (position, timeoutMs) => runner.waitFor(position, timeoutMs);
  const readModels = createReadModels({ database: pool, models, waitFor, clock: context.clock });
  return { runner, readModels, models: Object.values(models).map(({ name }) => name) };
}
