/** Which read models the server keeps, and their runner. */
import type { Logger } from 'pino';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import { withUpdatesInPlace } from '../../core/use-cases/wide-refs.ts';
import { accessTokensProjection } from '../../projections/access-tokens/apply.ts';
import { repositoriesProjection } from '../../projections/repositories/apply.ts';
import { createProjectionRunner, type ProjectionMetrics, type ProjectionRunner } from '../../projections/runner/runner.ts';
import { usageProjection } from '../../projections/usage/apply.ts';
import type { Foundation } from './foundation.ts';

export function composeProjections(
  { context, pool }: Foundation,
  _objects: ObjectDatabase,
  log: Logger,
  metrics: ProjectionMetrics,
): { readonly runner: ProjectionRunner } {
  const runner = createProjectionRunner({
    events: context.events,
    database: pool,
    models: [repositoriesProjection, accessTokensProjection, usageProjection],
    complete: (event) => withUpdatesInPlace(context, event),
    log,
    metrics,
  });
  return { runner };
}
