/**
 * The workflows of the service, and the engine that carries them out.
 *
 * Must stay true: any number of processes may run the engine, one of them carries out; a stop waits for the steps
 * under way.
 */
import { createAlarm } from '../../adapters/node/alarm.ts';
import { createPostgresLead } from '../../adapters/postgres/lead.ts';
import type { Log } from '../../core/ports/log.ts';
import { carriedOut, type Timers, type Workflow } from '../../core/ports/workflows.ts';
import { deviceLogin } from '../../workflows/device-login/logic.ts';
import { createDeviceLoginSteps } from '../../workflows/device-login/steps.ts';
import { startEmbeddedEngine } from '../../workflows/embedded/engine.ts';
import { webhookDelivery } from '../../workflows/webhook-delivery/logic.ts';
import { createWebhookDeliverySteps } from '../../workflows/webhook-delivery/steps.ts';
import type { Foundation } from './foundation.ts';

/** What timers are kept for. */
export const WORKFLOWS: readonly Workflow[] = [deviceLogin, webhookDelivery];

export interface WorkflowsOptions {
  readonly foundation: Foundation;
  readonly timers: Timers;
  readonly log: Log;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** Starts the engine; the function returned ends it. */
export function startWorkflows({ foundation, timers, log, onFault }: WorkflowsOptions): () => Promise<void> {
  const { context, pool } = foundation;
  return startEmbeddedEngine({
    workflows: [
      carriedOut(deviceLogin, createDeviceLoginSteps(context)),
      carriedOut(webhookDelivery, createWebhookDeliverySteps(context)),
    ],
    events: context.events,
    timers,
    lead: createPostgresLead({ pool, log }),
    clock: context.clock,
    alarm: createAlarm(context.clock),
    onFault: (workflow, cause) => onFault(`workflow-${workflow}`, cause),
  });
}
