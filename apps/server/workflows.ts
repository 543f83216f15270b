/**
 * The workflows of the service, and the engine that carries them out: the embedded one, or Temporal.
 *
 * Must stay true: any number of processes may run the engine, and each step is carried out by one of them; a stop waits
 * for the steps under way; a Temporal that does not answer stops no start and no request.
 */
import { createAlarm } from '../../adapters/node/alarm.ts';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresLead } from '../../adapters/postgres/lead.ts';
import { msBetween } from '../../core/kernel/ids.ts';
import type { Log } from '../../core/ports/log.ts';
import { type CarriedOutWorkflow, carriedOut, type Timers, type Workflow } from '../../core/ports/workflows.ts';
import { deviceLogin } from '../../workflows/device-login/logic.ts';
import { createDeviceLoginSteps } from '../../workflows/device-login/steps.ts';
import { startEmbeddedEngine } from '../../workflows/embedded/engine.ts';
import type { TemporalEngine } from '../../workflows/temporal/engine.ts';
import { webhookDelivery } from '../../workflows/webhook-delivery/logic.ts';
import { createWebhookDeliverySteps } from '../../workflows/webhook-delivery/steps.ts';
import { closer, type Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { every } from './periodic.ts';
import { createDuty, type StartedPart } from './readiness.ts';
import type { TemporalSettings } from './temporal-settings.ts';

/** What timers are kept for. */
export const WORKFLOWS: readonly Workflow[] = [deviceLogin, webhookDelivery];

export interface WorkflowsOptions {
  readonly foundation: Foundation;
  readonly timers: Timers;
  /** Null: the embedded engine. */
  readonly temporal: TemporalSettings | null;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** A Temporal that answers, and was not told of an event that is older than this, does less than it should. */
const BEHIND_MS = 30_000;
const LOOK_INTERVAL_MS = 500;

/** Starts the engine. */
export async function startWorkflows(options: WorkflowsOptions): Promise<StartedPart> {
  const { foundation, metrics, temporal } = options;
  const { context } = foundation;
  const workflows = [
    carriedOut(deviceLogin, createDeviceLoginSteps(context)),
    carriedOut(webhookDelivery, createWebhookDeliverySteps(context)),
  ].map((workflow) => counted(workflow, metrics));
  return temporal === null ? startEmbedded(options, workflows) : startOnTemporal(options, workflows, temporal);
}

/** The workflow, with what becomes of its steps in the metrics. */
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
  const duty = createDuty(() => context.clock.monotonicMs());
  const watched = async <Value>(reading: Promise<Value>): Promise<Value> => {
    try {
      return await reading;
    } catch (error) {
      duty.fails();
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
        duty.works();
        return earliest;
      },
    },
    lead: createPostgresLead({ pool, log }),
    clock: context.clock,
    alarm: createAlarm(context.clock),
    onFault: (workflow, cause) => onFault(`workflow-${workflow}`, cause),
  });
  return { duty, stop };
}

/** Temporal's libraries are loaded here: they would cost every other process a third of its start. */
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
  const lost = lostAndFound(log);
  const duty = createDuty(() => clock.monotonicMs());
  engine = startTemporalEngine({
    workflows,
    ...temporal,
    ...{ clock, log },
    events: context.events,
    lead: createPostgresLead({ pool, log }),
    marks: createPostgresPolicyMarks(pool),
    alarm: createAlarm(clock),
    onFault: (workflow, cause) => {
      // While it is away every try fails: one line says so.
      if (workflow === 'temporal' && engine?.state().reachable !== true) {
        lost.fails(cause);
        return;
      }
      if (workflow === 'temporal') duty.fails();
      onFault(`workflow-${workflow}`, cause);
    },
  });
  parts.add(() => engine.close());
  const look = async (): Promise<void> => {
    lost.look(engine.state().reachable);
  };
  parts.add(every(LOOK_INTERVAL_MS, look, (cause) => onFault('workflow-temporal', cause)));
  metrics.gauge('strata_workflow_engine_reachable', '1 while Temporal answers this process, else 0', () =>
    engine.state().reachable ? 1 : 0,
  );
  const isDegraded = (): boolean => duty.isDegraded() || isBehind(engine, clock.now());
  return { duty: { isDegraded }, stop: () => parts.close() };
}

function isBehind(engine: TemporalEngine, now: Parameters<typeof msBetween>[1]): boolean {
  const { reachable, behind } = engine.state();
  if (!reachable) return true;
  const oldestAt = behind?.oldestAt ?? null;
  return oldestAt !== null && msBetween(oldestAt, now) > BEHIND_MS;
}

/** One line when Temporal is lost, and one when it is back, however often it is tried meanwhile. */
function lostAndFound(log: Log): { fails(cause: unknown): void; look(reachable: boolean): void } {
  let lastCause: unknown = null;
  let isLost = false;
  return {
    fails: (cause) => {
      lastCause = cause;
    },
    look: (reachable) => {
      if (reachable) {
        if (isLost) log.info({}, 'Temporal is reached');
        lastCause = null;
        isLost = false;
      } else if (!isLost && lastCause !== null) {
        log.warn({ err: lastCause }, 'Temporal cannot be reached: what waits is carried out once it can be');
        isLost = true;
      }
    },
  };
}
