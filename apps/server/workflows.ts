/**
 * The workflows of the service, and the engine that runs them: the embedded one, or Temporal.
 *
 * Invariants: any number of processes may run the engine, and one of them carries out each step. Stopping waits for
 * the steps under way. A Temporal that does not answer prevents neither a start nor a request.
 */
import { createAlarm } from '../../adapters/node/alarm.ts';
import { pause } from '../../adapters/node/pause.ts';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresLead } from '../../adapters/postgres/lead.ts';
import { msBetween } from '../../core/kernel/ids.ts';
import type { LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerMerges } from '../../core/ports/layer-merges.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { Log } from '../../core/ports/log.ts';
import { type CarriedOutWorkflow, carriedOut, type Timers, type Workflow } from '../../core/ports/workflows.ts';
import type { ManifestContext } from '../../core/use-cases/manifests/write-manifest.ts';
import { deviceLogin } from '../../workflows/device-login/logic.ts';
import { createDeviceLoginSteps } from '../../workflows/device-login/steps.ts';
import { deviceRequest } from '../../workflows/device-request/logic.ts';
import { createDeviceRequestSteps } from '../../workflows/device-request/steps.ts';
import { startEmbeddedEngine } from '../../workflows/embedded/engine.ts';
import { layerCompaction } from '../../workflows/layer-compaction/logic.ts';
import { createCompactionSteps } from '../../workflows/layer-compaction/steps.ts';
import { manifestWriting } from '../../workflows/manifest-writing/logic.ts';
import { createManifestSteps } from '../../workflows/manifest-writing/steps.ts';
import type { TemporalEngine } from '../../workflows/temporal/engine.ts';
import { webhookDelivery } from '../../workflows/webhook-delivery/logic.ts';
import { createWebhookDeliverySteps } from '../../workflows/webhook-delivery/steps.ts';
import { startPeriodic } from './background.ts';
import { closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { createPartHealth, type StartedPart } from './readiness.ts';
import type { TemporalSettings } from './temporal-settings.ts';
import { readNotifiedTo } from './webhooks.ts';

/** The workflows whose timers the read model `workflow-timers` holds. */
export const WORKFLOWS: readonly Workflow[] = [deviceLogin, webhookDelivery];

export interface WorkflowsOptions {
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly objects: LayerMerges & LayerDrops;
  readonly retentionMs: number;
  readonly manifestContext: ManifestContext;
  readonly timers: Timers;
  /** Null: the embedded engine. */
  readonly temporal: TemporalSettings | null;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** The engine is degraded if an event older than this was not sent to Temporal, though Temporal answers. */
const BEHIND_MS = 30_000;

/** Starts the engine. */
export async function startWorkflows(options: WorkflowsOptions): Promise<StartedPart> {
  const { foundation, layers, objects, manifestContext, retentionMs, metrics, temporal, log } = options;
  const { context } = foundation;
  const notifiedTo = readNotifiedTo(foundation.pool);
  const compacting = { ...context, layers, objects, log, retentionMs, notifiedTo };
  const workflows = [
    carriedOut(deviceLogin, createDeviceLoginSteps(context)),
    carriedOut(deviceRequest(context.deviceRequests), createDeviceRequestSteps(context)),
    carriedOut(webhookDelivery, createWebhookDeliverySteps(context)),
    carriedOut(layerCompaction(context.compactions), createCompactionSteps(compacting)),
    carriedOut(manifestWriting(context.manifests), createManifestSteps({ ...context, ...manifestContext })),
  ].map((workflow) => counted(workflow, metrics));
  return temporal === null ? startEmbedded(options, workflows) : startOnTemporal(options, workflows, temporal);
}

/** Returns the workflow with steps that count their outcomes in the metrics. */
function counted({ workflow, steps }: CarriedOutWorkflow, metrics: Metrics): CarriedOutWorkflow {
  const actions = Object.entries(steps).map(([name, action]) => {
    const counting: typeof action = async (due, signal) => {
      try {
        await action(due, signal);
      } catch (error) {
        if (!signal.aborted) metrics.workflowStep(workflow.name, 'failed');
        throw error;
      }
      metrics.workflowStep(workflow.name, 'done');
    };
    return [name, counting] as const;
  });
  return { workflow, steps: Object.fromEntries(actions) };
}

function startEmbedded(
  { foundation, timers, log, onFault }: WorkflowsOptions,
  workflows: readonly CarriedOutWorkflow[],
): StartedPart {
  const { context, pool } = foundation;
  const health = createPartHealth(() => context.clock.monotonicMs());
  const watched = async <Value>(reading: Promise<Value>): Promise<Value> => {
    try {
      return await reading;
    } catch (error) {
      health.fails();
      throw error;
    }
  };
  const stop = startEmbeddedEngine({
    workflows,
    events: context.events,
    timers: {
      caughtUp: (position) => watched(timers.caughtUp(position)),
      earliest: async (workflow, limit) => {
        const earliest = await watched(timers.earliest(workflow, limit));
        health.works();
        return earliest;
      },
    },
    lead: createPostgresLead({ pool, pause, log }),
    clock: context.clock,
    alarm: createAlarm(context.clock),
    onFault: (workflow, cause) => onFault(`workflow-${workflow}`, cause),
  });
  return { health, stop };
}

/** Loads Temporal's libraries only if they are used: loading takes a third of the start of a process. */
async function startOnTemporal(
  { foundation, metrics, log, onFault }: WorkflowsOptions,
  workflows: readonly CarriedOutWorkflow[],
  temporal: TemporalSettings,
): Promise<StartedPart> {
  const { startTemporalEngine } = await import('../../workflows/temporal/engine.ts');
  const { context, pool } = foundation;
  const { clock } = context;
  const parts = closer();
  let engine: TemporalEngine | null = null;
  const connection = createConnectionLog(log);
  const health = createPartHealth(() => clock.monotonicMs());
  engine = startTemporalEngine({
    workflows,
    ...temporal,
    clock,
    pause,
    log,
    events: context.events,
    lead: createPostgresLead({ pool, pause, log }),
    marks: createPostgresPolicyMarks(pool),
    alarm: createAlarm(clock),
    onFault: (workflow, cause) => {
      // While Temporal does not answer every attempt fails; the connection log writes one line for all of them.
      if (workflow === 'temporal' && engine?.state().reachable !== true) {
        connection.failed(cause);
        return;
      }
      if (workflow === 'temporal') health.fails();
      onFault(`workflow-${workflow}`, cause);
    },
  });
  parts.add(() => engine.close());
  startPeriodic<'worker'>({ onFault, metrics }, parts)('workflow-temporal', async () => {
    connection.check(engine.state().reachable);
  });
  metrics.gauge('strata_workflow_engine_reachable', '1 while Temporal answers this process, else 0', () =>
    engine.state().reachable ? 1 : 0,
  );
  const isDegraded = (): boolean => health.isDegraded() || isBehind(engine, clock.now());
  return { health: { isDegraded }, stop: () => parts.close() };
}

function isBehind(engine: TemporalEngine, now: Parameters<typeof msBetween>[1]): boolean {
  const { reachable, behind } = engine.state();
  if (!reachable) return true;
  const oldestAt = behind?.oldestAt ?? null;
  return oldestAt !== null && msBetween(oldestAt, now) > BEHIND_MS;
}

/** Logs one line when Temporal stops answering and one when it answers again, however many attempts fail between. */
function createConnectionLog(log: Log): { failed(cause: unknown): void; check(reachable: boolean): void } {
  let lastCause: unknown = null;
  let isLost = false;
  return {
    failed: (cause) => {
      lastCause = cause;
    },
    check: (reachable) => {
      if (reachable) {
        if (isLost) log.info({}, 'Temporal is reached');
        lastCause = null;
        isLost = false;
      } else if (!isLost && lastCause !== null) {
        log.warn({ err: lastCause }, 'Temporal cannot be reached: due steps are carried out when it answers again');
        isLost = true;
      }
    },
  };
}
