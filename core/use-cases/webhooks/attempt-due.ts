/**
 * Says in a delivery's stream that its next attempt may be made now: the wait after a failed one is over, or whoever had
 * claimed it did not record it in time.
 *
 * Must stay true: the stream decides whether that is so, once for each wait; asked too early, late or twice, nothing
 * is appended.
 */
import { type Cause, streamName } from '../../kernel/envelope.ts';
import type { WebhookDeliveryId } from '../../kernel/ids.ts';
import type { Reach } from '../../ports/failpoints.ts';
import { decideWebhookDelivery } from '../../webhook-delivery/decide.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';
import { type Context, execute } from '../../runtime/execute.ts';

export async function makeAttemptDue(
  context: Context & { readonly reach: Reach },
  cause: Cause,
  id: WebhookDeliveryId,
): Promise<void> {
  const stream = streamName(webhookDeliveries.category, id);
  const [requested] = await context.events.readStream(stream, { direction: 'forwards', limit: 1 });
  if (requested === undefined) throw new TypeError(`Delivery ${id} has no stream`);
  await context.reach('webhook-wait-over');
  const about = { account: requested.accountId, cause };
  const made = await execute(context, webhookDeliveries, id, about, (state) =>
    decideWebhookDelivery(state, { type: 'MakeAttemptDue', now: context.clock.now() }),
  );
  if ('refused' in made) throw new TypeError(`Delivery ${id} has no stream`);
  await context.reach('webhook-attempt-due');
}
