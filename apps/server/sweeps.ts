/**
 * The sweeps that every process with periodic work runs: what was stored for an event that never came, and secrets whose
 * time is over.
 *
 * Must stay true: any number of processes may run them; a stop waits for no more than the step under way.
 */
import type { Logger } from 'pino';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresVaultReferences } from '../../adapters/postgres/vault-references.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import { removeExpiredWebhookSecrets } from '../../core/use-cases/webhooks/expired-webhook-secrets.ts';
import { sweepLayers } from '../../core/use-cases/sweeping/sweep-layers.ts';
import { sweepVault } from '../../core/use-cases/sweeping/sweep-vault.ts';
import { closer, type Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { every } from './periodic.ts';

/** What is swept has waited for days: looking through the whole store and its streams is not to be felt. */
const LAYERS_INTERVAL_MS = 6 * 60 * 60_000;
/** Reads what the log gained since. */
const VAULT_INTERVAL_MS = 10 * 60_000;

export interface SweepsOptions {
  readonly foundation: Foundation;
  readonly layers: LayerStore;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** Starts them; the function returned ends them. */
export function startSweeps({ foundation, layers, metrics, log, onFault }: SweepsOptions): () => Promise<void> {
  const { context, pool } = foundation;
  const parts = closer();
  const layerSweep = { ...context, layers, log, onSwept: () => metrics.swept('layer') };
  parts.add(
    every(
      LAYERS_INTERVAL_MS,
      (signal) => sweepLayers(layerSweep, signal),
      (cause) => onFault('layer-sweep', cause),
    ),
  );
  const references = createPostgresVaultReferences(pool);
  const vaultSweep = { ...context, references, log, onSwept: () => metrics.swept('vault-record') };
  parts.add(
    every(
      VAULT_INTERVAL_MS,
      (signal) => sweepVault(vaultSweep, signal),
      (cause) => onFault('vault-sweep', cause),
    ),
  );
  const secrets = { ...context, marks: createPostgresPolicyMarks(pool) };
  parts.add(
    every(
      VAULT_INTERVAL_MS,
      (signal) => removeExpiredWebhookSecrets(secrets, signal),
      (cause) => onFault('webhook-secret-expiry', cause),
    ),
  );
  return () => parts.close();
}
