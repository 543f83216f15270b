/**
 * The work of the role `worker`, for the whole service: deletions, workflows, sweeps and webhooks.
 *
 * Invariants: no request depends on this work, and any number of processes may do it.
 */
import type { Logger } from 'pino';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import type { LayerCounts, LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerMerges } from '../../core/ports/layer-merges.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { Checkpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { signDaily } from '../../core/use-cases/auditing/sign-daily.ts';
import { requestManifests } from '../../core/use-cases/manifests/request-manifests.ts';
import { recordUsage } from '../../core/use-cases/metering/record-usage.ts';
import { createDeletionFinisher } from '../../core/use-cases/repositories/finish-deletions.ts';
import packageJson from '../../package.json' with { type: 'json' };
import type { ComposedAccountStates } from './account-states.ts';
import { startPeriodic } from './background.ts';
import { closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import type { ComposedProjections } from './projections.ts';
import type { PartHealth } from './readiness.ts';
import type { Settings } from './settings.ts';
import { startSweeps } from './sweeps.ts';
import { startWebhooks } from './webhooks.ts';
import { startWorkflows } from './workflows.ts';

export interface WorkOptions {
  readonly settings: Settings;
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly objects: ObjectDatabase & LayerMerges & LayerDrops & LayerCounts;
  readonly projections: Pick<ComposedProjections, 'readModels' | 'timers'>;
  readonly outgoing: OutgoingRequests;
  readonly checkpoints: Checkpoints;
  readonly states: ComposedAccountStates;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFault: (what: string, cause: unknown) => void;
}

export interface StartedWork {
  /** The parts that may be degraded, by name. */
  readonly healths: Readonly<Record<string, Pick<PartHealth, 'isDegraded'>>>;
  stop(): Promise<void>;
}

export async function startWork(options: WorkOptions): Promise<StartedWork> {
  const { settings, foundation, layers, objects, projections, outgoing, metrics, log, onFault } = options;
  const { checkpoints, states } = options;
  const { readModels, timers } = projections;
  const { temporal, webUrl, retentionMs } = settings;
  const parts = closer();
  const start = startPeriodic<'worker'>(onFault, parts);
  try {
    start('deletions', createDeletionFinisher({ ...foundation.context, readModels }));
    const manifestContext = { ...foundation.context, layers, retentionMs, log };
    const engine = { timers, temporal, retentionMs, manifestContext };
    const workflows = await startWorkflows({ foundation, layers, objects, ...engine, metrics, log, onFault });
    parts.add(workflows.stop);
    const requests = { ...foundation.context, marks: createPostgresPolicyMarks(foundation.pool) };
    start('manifest-requests', (signal) => requestManifests(requests, signal));
    const daily = { readModels, checkpoints, store: layers.platform, log };
    start('daily-checkpoints', (signal) => signDaily(daily, signal));
    start('daily-usage', (signal) => recordUsage(requests, signal));
    start('account-snapshots', (signal) => states.accountStates.keepSnapshots(signal));
    parts.add(startSweeps({ foundation, layers, readModels, retentionMs, metrics, log, onFault }));
    const webhooks = startWebhooks({
      foundation,
      objects,
      outgoing,
      due: readModels,
      webUrl,
      retentionMs,
      version: packageJson.version,
      metrics,
      log,
      onFault,
    });
    parts.add(webhooks.stop);
    return {
      healths: { workflows: workflows.health, webhooks: webhooks.health },
      stop: () => parts.close(),
    };
  } catch (error) {
    await parts.close();
    throw error;
  }
}
