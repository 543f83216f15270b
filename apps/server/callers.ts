/** The rates of callers on this node, and their exchange with other nodes. */
import { createPostgresRateSums } from '../../adapters/postgres/rate-sums.ts';
import { type Callers, createCallers } from '../front-door/callers.ts';
import { createRateExchange } from '../front-door/rate-exchange.ts';
import { type BackgroundReports, startPeriodic } from './background.ts';
import type { Closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import type { Settings } from './settings.ts';

export interface CallersComposing extends BackgroundReports {
  readonly settings: Pick<Settings, 'rateFactor'>;
  readonly parts: Pick<Closer, 'add'>;
}

export function composeCallers(
  { settings, metrics, onFault, parts }: CallersComposing,
  { context, pool }: Pick<Foundation, 'context' | 'pool'>,
): Callers {
  const callers = createCallers({ clock: context.clock, factor: settings.rateFactor });
  const exchange = createRateExchange({
    node: context.ids.next(),
    counts: callers.counts,
    sums: createPostgresRateSums(pool),
  });
  startPeriodic<'every node'>({ onFault, metrics }, parts)('rate-exchange', exchange);
  return callers;
}
