/**
 * The sweeps that every worker runs: they list what crashes left in the stores of layers, remove layers and vault records that no event names, layers that a compaction
 * replaced or that belong to deleted repositories, expired secrets, and counts of rate limits whose span is over, erase closed accounts, and ask for compactions
 * of repositories that hold what no ref reaches.
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
import { removeLeftIncoming } from '../../core/use-cases/sweeping/left-incoming.ts';
import { type Leftovers, listLeftovers } from '../../core/use-cases/sweeping/list-leftovers.ts';
import { sweepBuckets } from '../../core/use-cases/sweeping/sweep-buckets.ts';
import { sweepLayers } from '../../core/use-cases/sweeping/sweep-layers.ts';
import { sweepVault } from '../../core/use-cases/sweeping/sweep-vault.ts';
import { removeExpiredWebhookSecrets } from '../../core/use-cases/webhooks/expired-webhook-secrets.ts';
import { closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { every } from './periodic.ts';
import { composeRetention } from './retention.ts';

/** Layers are swept days after they were stored, so a rare sweep is enough; it lists the whole store. */
const LAYERS_INTERVAL_MS = 6 * 60 * 60_000;
/** The first of the rare sweeps: a server that is often started anew would never come to it otherwise. */
const RARE_FIRST_MS = 20 * 60_000;
const LEFTOVERS_INTERVAL_MS = 24 * 60 * 60_000;
/** Reads only the events appended since the last time. */
const RETENTION_INTERVAL_MS = 10 * 60_000;
/** Looks at each delivery that is listed. */
const PRUNING_INTERVAL_MS = 6 * 60 * 60_000;
/** A sweep of the vault reads only the events appended since the last one. */
const VAULT_INTERVAL_MS = 10 * 60_000;
/** Soon after the start: this sweep finishes erasures that the process before this one left unfinished. */
const VAULT_FIRST_MS = 1_000;
const ERASURES_INTERVAL_MS = 10 * 60_000;
const RATE_LIMITS_INTERVAL_MS = 60_000;
const SESSIONS_INTERVAL_MS = 10 * 60_000;
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
  sweepLayerStores(options, parts);
  const marks = createPostgresPolicyMarks(pool);
  parts.add(startRetention(options));
  const references = createPostgresVaultReferences(pool);
  const erasing = { ...context, platformStore: layers.platform };
  const vaultSweep = { ...erasing, references, log, onSwept: () => metrics.swept('vault-record') };
  parts.add(
    every(
      VAULT_INTERVAL_MS,
      (signal) => sweepVault(vaultSweep, signal),
      (cause) => onFault('vault-sweep', cause),
      VAULT_FIRST_MS,
    ),
  );
  const secrets = { ...context, marks };
  parts.add(
    every(
      VAULT_INTERVAL_MS,
      (signal) => removeExpiredWebhookSecrets(secrets, signal),
      (cause) => onFault('webhook-secret-expiry', cause),
    ),
  );
  const dueAccounts = { ...erasing, marks, log };
  parts.add(
    every(
      ERASURES_INTERVAL_MS,
      (signal) => eraseDueAccounts(dueAccounts, signal),
      (cause) => onFault('account-erasure', cause),
    ),
  );
  parts.add(
    every(
      ERASURES_INTERVAL_MS,
      (signal) => eraseLeftovers(dueAccounts, signal),
      (cause) => onFault('erasure-leftovers', cause),
    ),
  );
  parts.add(
    every(
      RATE_LIMITS_INTERVAL_MS,
      (signal) => removeExpiredCounts(pool, signal),
      (cause) => onFault('rate-limit-expiry', cause),
    ),
  );
  const { sessions } = context;
  parts.add(
    every(
      SESSIONS_INTERVAL_MS,
      async () => {
        await sessions.removeExpired(context.clock.now(), SESSIONS_AT_ONCE_MAX);
      },
      (cause) => onFault('session-expiry', cause),
    ),
  );
  return () => parts.close();
}

/** What leaves when the retention is over. */
function startRetention(options: SweepsOptions): () => Promise<void> {
  const parts = closer();
  const sweeps = composeRetention({ ...options, onPruned: () => options.metrics.swept('stream') });
  const faults: Readonly<Record<keyof typeof sweeps, string>> = {
    expireLayers: 'layer-expiry',
    expireDeleted: 'deleted-expiry',
    removePurged: 'purge-removal',
    askForDrops: 'unreached-objects',
    prune: 'log-pruning',
  };
  const start = (sweep: keyof typeof sweeps, intervalMs = RETENTION_INTERVAL_MS, firstMs = intervalMs): void =>
    parts.add(every(intervalMs, sweeps[sweep], (cause) => options.onFault(faults[sweep], cause), firstMs));
  start('expireLayers');
  start('expireDeleted');
  start('removePurged');
  start('askForDrops');
  start('prune', PRUNING_INTERVAL_MS, RARE_FIRST_MS);
  return () => parts.close();
}

/** The platform's store and those of users, apart from each other. */
function sweepLayerStores(
  { foundation, layers, readModels, metrics, log, onFault }: SweepsOptions,
  parts: ReturnType<typeof closer>,
): void {
  const { context } = foundation;
  const ownerOf = readModels.ownerOf.bind(readModels);
  const layerSweep = { ...context, layers: layers.platform, log, ownerOf, onSwept: () => metrics.swept('layer') };
  let leftovers: Leftovers = { count: 0, sizeBytes: 0 };
  metrics.gauge('strata_leftover_bytes', 'What crashes left in the stores of layers, as of the last daily list', () => {
    return leftovers.sizeBytes;
  });
  parts.add(
    every(
      LEFTOVERS_INTERVAL_MS,
      async (signal) => {
        leftovers = await listLeftovers({ ...layerSweep, layers, readModels }, signal);
        await removeLeftIncoming(layerSweep, signal);
      },
      (cause) => onFault('leftover-list', cause),
      RARE_FIRST_MS,
    ),
  );
  parts.add(
    every(
      LAYERS_INTERVAL_MS,
      (signal) => sweepLayers(layerSweep, signal),
      (cause) => onFault('layer-sweep', cause),
      RARE_FIRST_MS,
    ),
  );
  const bucketSweep = { ...layerSweep, layers, readModels };
  parts.add(
    every(
      LAYERS_INTERVAL_MS,
      (signal) => sweepBuckets(bucketSweep, signal),
      (cause) => onFault('bucket-sweep', cause),
      RARE_FIRST_MS,
    ),
  );
}
