/**
 * The sweeps that every worker runs: they list what crashes left in the stores of layers, remove layers and vault
 * records that no event names, layers that a compaction replaced or that belong to deleted repositories, expired
 * secrets, and counts of rate limits whose span is over, erase closed accounts, and ask for compactions of repositories
 * that hold what no ref reaches. background.ts says how often each runs.
 *
 * Invariants: any number of processes may run the sweeps. Stopping waits only for the step under way.
 */
import type { Logger } from 'pino';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { removeExpiredCounts } from '../../adapters/postgres/rate-limits.ts';
import { createPostgresVaultReferences } from '../../adapters/postgres/vault-references.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { BucketsInUse, RepositoryOwners } from '../../core/ports/repository-lists.ts';
import { eraseDueAccounts } from '../../core/use-cases/erasing/erase-due-accounts.ts';
import { eraseLeftovers } from '../../core/use-cases/erasing/erase-leftovers.ts';
import { removeLeftIncoming } from '../../core/use-cases/sweeping/abandoned-uploads.ts';
import { type Leftovers, listLeftovers } from '../../core/use-cases/sweeping/report-orphaned-layers.ts';
import { sweepBuckets } from '../../core/use-cases/sweeping/sweep-buckets.ts';
import { sweepLayers } from '../../core/use-cases/sweeping/sweep-layers.ts';
import { sweepVault } from '../../core/use-cases/sweeping/sweep-vault.ts';
import { removeExpiredWebhookSecrets } from '../../core/use-cases/webhooks/expired-webhook-secrets.ts';
import { type StartPeriodic, startPeriodic } from './background.ts';
import { closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { composeRetention } from './retention.ts';

/** Sessions that one sweep removes. Internal: the rest is removed later. */
const SESSIONS_AT_ONCE_MAX = 10_000;

export interface SweepsOptions {
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly readModels: BucketsInUse & RepositoryOwners;
  readonly retentionMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** Starts the sweeps; the returned function stops them. */
export function startSweeps(options: SweepsOptions): () => Promise<void> {
  const { foundation, layers, metrics, log, onFault } = options;
  const { context, pool } = foundation;
  const parts = closer();
  const start = startPeriodic<'worker'>({ onFault, metrics }, parts);
  startLayerSweeps(options, start);
  startRetention(options, start);
  const marks = createPostgresPolicyMarks(pool);
  const references = createPostgresVaultReferences(pool);
  const erasing = { ...context, platformStore: layers.platform };
  const vaultSweep = { ...erasing, references, log, onSwept: () => metrics.swept('vault-record') };
  start('vault-sweep', (signal) => sweepVault(vaultSweep, signal));
  const secrets = { ...context, marks };
  start('webhook-secret-expiry', (signal) => removeExpiredWebhookSecrets(secrets, signal));
  const dueAccounts = { ...erasing, marks, log };
  start('account-erasure', (signal) => eraseDueAccounts(dueAccounts, signal));
  start('erasure-leftovers', (signal) => eraseLeftovers(dueAccounts, signal));
  start('rate-limit-expiry', (signal) => removeExpiredCounts(pool, signal));
  start('session-expiry', async () => {
    await context.sessions.removeExpired(context.clock.now(), SESSIONS_AT_ONCE_MAX);
  });
  return () => parts.close();
}

/** What leaves when the retention is over. */
function startRetention(options: SweepsOptions, start: StartPeriodic<'worker'>): void {
  const sweeps = composeRetention({ ...options, onPruned: () => options.metrics.swept('stream') });
  start('layer-expiry', sweeps.expireLayers);
  start('deleted-expiry', sweeps.expireDeleted);
  start('purge-removal', sweeps.removePurged);
  start('unreached-objects', sweeps.askForDrops);
  start('log-pruning', sweeps.prune);
}

/** The platform's store and those of users, apart from each other. */
function startLayerSweeps(
  { foundation, layers, readModels, metrics, log }: SweepsOptions,
  start: StartPeriodic<'worker'>,
): void {
  const { context } = foundation;
  const ownerOf = readModels.ownerOf.bind(readModels);
  const layerSweep = { ...context, layers: layers.platform, log, ownerOf, onSwept: () => metrics.swept('layer') };
  let leftovers: Leftovers = { count: 0, sizeBytes: 0 };
  metrics.gauge('strata_leftover_bytes', 'What crashes left in the stores of layers, as of the last daily list', () => {
    return leftovers.sizeBytes;
  });
  start('leftover-list', async (signal) => {
    leftovers = await listLeftovers({ ...layerSweep, layers, readModels }, signal);
    await removeLeftIncoming(layerSweep, signal);
  });
  start('layer-sweep', (signal) => sweepLayers(layerSweep, signal));
  const bucketSweep = { ...layerSweep, layers, readModels };
  start('bucket-sweep', (signal) => sweepBuckets(bucketSweep, signal));
}
