/**
 * Requests deliveries: of a notification, of a ping, and again of an earlier delivery.
 *
 * Invariants: a payload is stored before the event that names its digest. A delivery's id is derived from its event
 * and its webhook, so a repeated request makes no second delivery.
 */
import { accounts } from '../../account/evolve.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { Cause, LogPosition } from '../../kernel/envelope.ts';
import type { AccountId, EventId, RepositoryId, WebhookDeliveryId, WebhookId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';
import type { DeliveryStore } from '../../ports/delivery-store.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { decideWebhookDelivery } from '../../webhook-delivery/decide.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';
import { deliveryIdOf } from '../../webhook-delivery/notifications.ts';
import { pingPayload } from '../../webhook-delivery/payload.ts';
import { type BudgetContext, type NotBefore, takeTime } from './delivery-budget.ts';
import { findWaiting, type WaitingContext } from './postponed-deliveries.ts';
import { findWebhook, type WebhookCommandOrigin } from './webhooks.ts';

export interface DeliveryContext extends Context {
  readonly digest: Digest;
  readonly deliveries: DeliveryStore;
  readonly failpoint: Failpoint;
}

type Refused = { readonly refused: Refusal };

const NO_ROOM: Refused = { refused: { code: 'webhook-deliveries-wait' } };

export interface NotificationBody {
  readonly eventId: EventId;
  readonly body: string;
}

/** Stores bodies unless their events already have one. Resolves with the digests of the stored bodies, in order. */
export function storePayloads(
  { deliveries, digest, clock }: Pick<DeliveryContext, 'deliveries' | 'digest' | 'clock'>,
  account: AccountId,
  bodies: readonly NotificationBody[],
): Promise<readonly string[]> {
  const storedAt = clock.now();
  return deliveries.putPayloads(
    bodies.map(({ eventId, body }) => ({ eventId, account, body, sha256: digest.sha256(body), storedAt })),
  );
}

export interface WantedDelivery {
  readonly webhookId: WebhookId;
  readonly eventId: EventId;
  readonly event: WebhookEventKind;
  readonly repositoryId: RepositoryId | null;
  readonly payloadSha256: string;
  readonly notBefore: NotBefore;
}

/** Requests a delivery unless it was requested before. */
export async function requestDelivery(
  context: Context,
  origin: { readonly account: AccountId; readonly cause: Cause; readonly guarding?: Guarding },
  wanted: WantedDelivery,
): Promise<{ readonly deliveryId: WebhookDeliveryId; readonly position: LogPosition } | Refused> {
  const { webhookId, eventId, event } = wanted;
  const deliveryId = deliveryIdOf(context.ids, eventId, webhookId, event);
  const requested = await execute(context, webhookDeliveries, deliveryId, origin, (state) =>
    decideWebhookDelivery(state, { type: 'RequestDelivery', ...wanted }),
  );
  return 'refused' in requested ? requested : { deliveryId, position: requested.entity.position };
}

export interface RequestedDelivery {
  readonly eventId: EventId;
  readonly deliveryId: WebhookDeliveryId;
}

/** Requests a ping to this webhook, whatever events it listens for. */
export async function pingWebhook(
  context: DeliveryContext & BudgetContext & { readonly vault: Vault },
  origin: WebhookCommandOrigin,
  id: WebhookId,
): Promise<RequestedDelivery | Refused> {
  const { account } = origin;
  const found = await findWebhook(context, origin, id);
  if ('refused' in found) return found;
  const { state } = await context.entities.get(accounts, account);
  if (state.status !== 'open') return { refused: { code: 'webhook-not-found' } };
  const eventId = context.ids.next<EventId>();
  const { events, active } = found.webhook;
  const body = pingPayload({
    eventId,
    createdAt: context.clock.now(),
    webhook: { id, url: found.url, events, active },
    owner: { id: account, username: state.username },
  });
  const notBefore = await takeTime(context, account);
  if (notBefore === 'no-room') return NO_ROOM;
  const [payloadSha256 = ''] = await storePayloads(context, account, [{ eventId, body }]);
  const wanted = { webhookId: id, eventId, event: 'ping', repositoryId: null, payloadSha256, notBefore } as const;
  const requested = await requestDelivery(context, origin, wanted);
  return 'refused' in requested ? requested : { eventId, deliveryId: requested.deliveryId };
}

/**
 * Starts a new series of attempts. Does nothing while the current series has attempts left, or is still to be made: its
 * hour stays its hour. Refused if the payload was removed after retention, or gave way.
 */
export async function redeliver(
  context: DeliveryContext & WaitingContext & { readonly vault: Vault },
  origin: WebhookCommandOrigin,
  id: WebhookId,
  deliveryId: WebhookDeliveryId,
): Promise<RequestedDelivery | Refused> {
  const found = await findWebhook(context, origin, id);
  if ('refused' in found) return found;
  let { state } = await context.entities.get(webhookDeliveries, deliveryId);
  const notFound: Refused = { refused: { code: 'webhook-delivery-not-found' } };
  if (state.status === 'absent') {
    const waiting = await findWaiting(context, origin.account, id, deliveryId);
    if (waiting !== null) return { eventId: waiting.eventId, deliveryId };
    // Its hour may have come since.
    ({ state } = await context.entities.reload(webhookDeliveries, deliveryId));
  }
  if (state.status === 'absent' || state.webhookId !== id) return notFound;
  const { eventId } = state;
  const payload = (await context.deliveries.payloads([eventId])).get(eventId);
  // One that gave way may have been made again, for a webhook that was told later, and then hold less.
  if (payload === undefined || context.digest.sha256(payload) !== state.payloadSha256) return notFound;
  // One that is under way already is not begun again, and takes nothing.
  const notBefore = state.status === 'pending' ? null : await takeTime(context, origin.account);
  if (notBefore === 'no-room') return NO_ROOM;
  const again = await execute(context, webhookDeliveries, deliveryId, origin, (delivery) =>
    decideWebhookDelivery(delivery, { type: 'Redeliver', notBefore }),
  );
  return 'refused' in again ? again : { eventId, deliveryId };
}
