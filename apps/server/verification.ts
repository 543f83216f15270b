/** The verification of log, vault and layers in the background, and what it shows. */
import { randomUUID } from 'node:crypto';
import { pause } from '../../adapters/node/pause.ts';
import { createPostgresVerificationWalks } from '../../adapters/postgres/verification-walks.ts';
import type { Walk } from '../../core/ports/verification-walks.ts';
import { createVerification } from '../../core/use-cases/verifying/verify-in-background.ts';
import type { StartPeriodic } from './background.ts';
import type { Composing } from './composing.ts';
import type { Opened } from './opened.ts';

export function startVerification(
  { metrics, log }: Composing,
  { foundation, layers, projections, checkpoints }: Opened,
  start: StartPeriodic<'worker'>,
): void {
  let faults = 0;
  const verification = createVerification(
    {
      ...foundation.context,
      layers,
      checkpoints,
      pause,
      log,
      readModels: projections.readModels,
      walks: createPostgresVerificationWalks(foundation.pool),
      computedMs,
      onFault: () => void (faults += 1),
    },
    randomUUID(),
  );
  metrics.total(
    'strata_verification_faults_total',
    'Accounts in whose log, vault records or layers the verification found a fault, once in each round',
    () => faults,
  );
  const since = (walk: Walk) => (): number => Date.parse(verification.wholeSince(walk) ?? EPOCH) / 1_000;
  metrics.gauges(
    'strata_verified_since_timestamp_seconds',
    'Unix time since which all was verified: when the last whole round began, or else the first one; 0 before that',
    'round',
    { week: since('week'), month: since('month') },
  );
  start('verification', (signal) => verification.run(signal));
}

const EPOCH = '1970-01-01T00:00:00.000Z';

/** The time of the processor that this process has taken, in all its threads. */
function computedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
