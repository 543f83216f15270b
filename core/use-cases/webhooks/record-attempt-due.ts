/**
 * Appends to a delivery's stream that its next attempt is due: the wait after a failed attempt is over, or the process
 * that claimed the attempt did not record it in time.
 *
 * Invariants: the state of the stream decides whether the attempt is due, once for each wait. A call that is too
 * early, too late or repeated appends nothing.
 */
import { type Cause, streamName } from '../../kernel/envelope.ts';
import type { WebhookDeliveryId } from '../../kernel/ids.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { decideWebhookDelivery } from '../../webhook-delivery/decide.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';

export async function makeAttemptDue(
  context: Context & { readonly failpoint: Failpoint },
  cause: Cause,
  id: WebhookDeliveryId,
): Promise<void> {
  const stream = streamName(webhookDeliveries.category, id);
  const [requested] = await context.events.readStream(stream, { direction: 'forwards', limit: 1 });
  if (requested === undefined) throw new TypeError(`Delivery ${id} has no stream`);
  await context.failpoint('webhook-wait-over');
  const about = { account: requested.accountId, cause };
  const made = await execute(context, webhookDeliveries, id, about, (state) =>
    decideWebhookDelivery(state, { type: 'MakeAttemptDue', now: context.clock.now() }),
  );
  if ('refused' in made) throw new TypeError(`Delivery ${id} has no stream`);
  await context.failpoint('webhook-attempt-due');
}
