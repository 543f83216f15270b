/** The steps of a delivery; the dispatcher makes the attempts themselves. */
import { uuid, type WebhookDeliveryId } from '../../core/kernel/ids.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import type { Context } from '../../core/runtime/execute.ts';
import { systemCause } from '../../core/runtime/system-cause.ts';
import { makeAttemptDue } from '../../core/use-cases/webhooks/record-attempt-due.ts';
import { type WebhookDeliveryStep, webhookDelivery } from './logic.ts';

export function createWebhookDeliverySteps(
  context: Context & { readonly failpoint: Failpoint },
): StepActions<WebhookDeliveryStep> {
  return {
    due: ({ id }) =>
      makeAttemptDue(context, systemCause(context.ids, webhookDelivery.name), uuid<WebhookDeliveryId>(id)),
  };
}
