/** The rates of callers on this node, and their exchange with other nodes. */
import { createPostgresRateSums } from '../../adapters/postgres/rate-sums.ts';
import { RATE_EXCHANGE_INTERVAL_MS } from '../../core/kernel/limits.ts';
import { type Callers, createCallers } from '../front-door/callers.ts';
import { createRateExchange } from '../front-door/rate-exchange.ts';
import type { closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import { every } from './periodic.ts';
import type { Settings } from './settings.ts';

export interface CallersComposing {
  readonly settings: Pick<Settings, 'rateFactor'>;
  readonly onFault: (what: string, cause: unknown) => void;
  readonly parts: Pick<ReturnType<typeof closer>, 'add'>;
}

export function composeCallers(
  { settings, onFault, parts }: CallersComposing,
  { context, pool }: Pick<Foundation, 'context' | 'pool'>,
): Callers {
  const callers = createCallers({ clock: context.clock, factor: settings.rateFactor });
  const exchange = createRateExchange({
    node: context.ids.next(),
    counts: callers.counts,
    sums: createPostgresRateSums(pool),
  });
  parts.add(every(RATE_EXCHANGE_INTERVAL_MS, exchange, (cause) => onFault('rate-exchange', cause)));
  return callers;
}
