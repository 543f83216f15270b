/**
 * What leaves when the retention is over: replaced layers, deleted repositories, what no ref reaches, and operational
 * streams of the log. Workers sweep
 * at intervals, `strata-admin storage expire` immediately.
 *
 * Invariants: any number of processes may run each sweep, at the same time too.
 */
import type { Logger } from 'pino';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import {
  type ManifestOf,
  removeManifestsBefore,
  writeManifestNow,
} from '../../core/use-cases/manifests/write-manifest.ts';
import { recordUsage } from '../../core/use-cases/metering/record-usage.ts';
import { expireDeleted } from '../../core/use-cases/sweeping/expire-deleted.ts';
import { expireLayers, type LayerExpiryContext } from '../../core/use-cases/sweeping/expire-layers.ts';
import { minutesPrunedBefore, prunedBefore, pruneStreams } from '../../core/use-cases/sweeping/prune-streams.ts';
import { removePurged } from '../../core/use-cases/sweeping/remove-purged.ts';
import { askForDrops } from '../../core/use-cases/sweeping/request-drop-compactions.ts';
import { prunableBucketErrors } from '../../projections/bucket-errors/pruned.ts';
import { removePrunedRows } from '../../projections/runner/pruned-rows.ts';
import { prunableMinutes } from '../../projections/usage-ledger/pruned.ts';
import { prunableDeliveries } from '../../projections/webhook-deliveries/pruned.ts';
import type { Foundation } from './foundation.ts';
import { composePastEntities } from './past-entities.ts';

export interface RetentionOptions {
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly retentionMs: number;
  readonly log: Logger;
  readonly onPruned: () => void;
  readonly onFault: (what: string, cause: unknown) => void;
}

type Sweep = (signal: AbortSignal) => Promise<void>;

export interface RetentionSweeps {
  /** Asks for a compaction of each repository that holds what no ref has reached for longer. */
  readonly askForDrops: Sweep;
  /** Records that the layers of deleted repositories go. */
  readonly expireDeleted: Sweep;
  /** Records that replaced layers go, and removes them. */
  readonly expireLayers: Sweep;
  /** Removes layers that a purge or the end of a deleted repository let go an hour ago. */
  readonly removePurged: Sweep;
  /** Removes operational streams from the log, and the rows that were made from them. */
  readonly prune: Sweep;
}

export function composeRetention({
  foundation,
  layers,
  retentionMs,
  log,
  onPruned,
  onFault,
}: RetentionOptions): RetentionSweeps {
  const { context, pool, pruning } = foundation;
  const retention = { ...context, marks: createPostgresPolicyMarks(pool), retentionMs };
  const past = composePastEntities(foundation, onFault);
  const manifests = { ...context, layers, past, retentionMs, log };
  const beforeRemoval: LayerExpiryContext['beforeRemoval'] = (...of) => removeManifestsBefore(manifests, ...of);
  const removal = { ...retention, layers, past, log, beforeRemoval };
  const deleted = { ...retention, manifestNow: (of: ManifestOf) => writeManifestNow(manifests, of) };
  return {
    askForDrops: (signal) => askForDrops(retention, signal),
    expireDeleted: (signal) => expireDeleted(deleted, signal),
    expireLayers: (signal) => expireLayers(removal, signal),
    removePurged: (signal) => removePurged(removal, signal),
    prune: async (signal) => {
      // Nothing is removed that the daily sums do not hold.
      await recordUsage(retention, signal);
      await pruneStreams({ ...retention, pruning, onPruned }, signal);
      const rows = { ...context, database: pool };
      await removePrunedRows(rows, prunableDeliveries, prunedBefore(retention), signal);
      await removePrunedRows(rows, prunableBucketErrors, prunedBefore(retention), signal);
      await removePrunedRows(rows, prunableMinutes, minutesPrunedBefore(retention), signal);
    },
  };
}
