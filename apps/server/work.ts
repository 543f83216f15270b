/**
 * The work of the role `worker`, for the whole service: deletions, workflows, sweeps and webhooks.
 *
 * Invariants: no request depends on this work, and any number of processes may do it.
 */
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createCheckpointCheck } from '../../core/use-cases/auditing/check-checkpoints.ts';
import { signDaily } from '../../core/use-cases/auditing/sign-logs-daily.ts';
import { requestManifests } from '../../core/use-cases/manifests/request-manifests.ts';
import { recordUsage } from '../../core/use-cases/metering/record-usage.ts';
import { createDeletionFinisher } from '../../core/use-cases/repositories/finish-deletions.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { startPeriodic } from './background.ts';
import { closer } from './closer.ts';
import type { Composing } from './composing.ts';
import type { Opened } from './opened.ts';
import type { PartHealth } from './readiness.ts';
import { startSweeps } from './sweeps.ts';
import { tracedDeliveries } from './traced-parts.ts';
import { startVerification } from './verification.ts';
import { startWebhooks } from './webhooks.ts';
import { startWorkflows } from './workflows.ts';

export interface StartedWork {
  /** The parts that may be degraded, by name. */
  readonly healths: Readonly<Record<string, Pick<PartHealth, 'isDegraded'>>>;
  stop(): Promise<void>;
}

export async function startWork(composing: Composing, opened: Opened): Promise<StartedWork> {
  const { settings, metrics, log, onFault } = composing;
  const { port: tracing } = composing.tracing;
  const { foundation, layers, objects, past, projections, outgoing, checkpoints, states } = opened;
  const { readModels, timers } = projections;
  const { temporal, webUrl, retentionMs } = settings;
  const parts = closer();
  const start = startPeriodic<'worker'>({ onFault, metrics }, parts);
  try {
    start('deletions', createDeletionFinisher({ ...foundation.context, readModels }));
    const manifestContext = { ...foundation.context, layers, past, retentionMs, log };
    const engine = { timers, temporal, retentionMs, manifestContext };
    const workflows = await startWorkflows({ foundation, layers, objects, ...engine, metrics, log, onFault });
    parts.add(workflows.stop);
    const requests = { ...foundation.context, marks: createPostgresPolicyMarks(foundation.pool) };
    start('manifest-requests', (signal) => requestManifests(requests, signal));
    const daily = { readModels, checkpoints, store: layers.platform, log };
    start('daily-checkpoints', (signal) => signDaily(daily, signal));
    const check = createCheckpointCheck({ ...foundation.context, checkpoints, store: layers.platform });
    start('checkpoint-check', (signal) => check.look(signal));
    metrics.gauge(
      'strata_checkpoints_contradicted',
      'Accounts whose log does not continue its last checkpoint, until an operator accepts the loss',
      () => check.contradicted(),
    );
    startVerification(composing, opened, start);
    const checkpointHealth = { isDegraded: () => check.contradicted() > 0 };
    start('daily-usage', (signal) => recordUsage(requests, signal));
    start('account-snapshots', (signal) => states.accountStates.keepSnapshots(signal));
    parts.add(startSweeps({ foundation, layers, readModels, retentionMs, metrics, log, onFault }));
    const webhooks = startWebhooks({
      foundation,
      objects,
      outgoing: tracing === null ? outgoing : tracedDeliveries(outgoing, tracing),
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
      healths: { workflows: workflows.health, webhooks: webhooks.health, checkpoints: checkpointHealth },
      stop: () => parts.close(),
    };
  } catch (error) {
    await parts.close();
    throw error;
  }
}
