/** Webhook deliveries in memory, on a clock that a test moves. Only the network and the time are replaced. */
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../core/access-token/repository-selection.ts';
import type { Exchange } from '../../core/kernel/exchange.ts';
import type {
  AccountId,
  EventId,
  RepositoryId,
  Timestamp,
  WebhookDeliveryId,
  WebhookId,
} from '../../core/kernel/ids.ts';
import type { OutgoingRequest } from '../../core/ports/outgoing-requests.ts';
import { carriedOut } from '../../core/ports/workflows.ts';
import { type AttemptContext, attemptDelivery } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { requestDelivery, storePayloads } from '../../core/use-cases/webhooks/webhook-deliveries.ts';
import { createWebhook, findWebhook } from '../../core/use-cases/webhooks/webhooks.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import { startEmbeddedEngine } from '../../workflows/embedded/engine.ts';
import { createDispatcher, type Dispatcher } from '../../workflows/webhook-delivery/dispatcher.ts';
import { webhookDelivery } from '../../workflows/webhook-delivery/logic.ts';
import { onDeliveryEvents } from '../../workflows/webhook-delivery/on-delivery-events.ts';
import { createWebhookDeliverySteps } from '../../workflows/webhook-delivery/steps.ts';
import { accepted, newAccount } from './accounts.ts';
import { createMemoryDeliveries } from './memory/deliveries.ts';
import { createMemoryDeliveryStore } from './memory/delivery-store.ts';
import { createMemoryTimers } from './memory/timers.ts';
import { CAUSE, startNode } from './node.ts';
import { type WatchedLog, watchLog } from './watched-log.ts';

export const NO_CONTENT: Exchange = { outcome: 'answered', status: 204, body: new Uint8Array(0), extent: 'whole' };
export const TIMED_OUT: Exchange = { outcome: 'failed', failure: 'timed-out', status: null, detail: null };

export interface SentRequest {
  readonly host: string;
  readonly delivery: string;
  readonly at: Timestamp;
  readonly request: OutgoingRequest;
}

/** `behave` decides how the receivers answer each request. */
export async function delivering(
  behave: (sent: SentRequest) => Promise<Exchange> | Exchange,
  log: WatchedLog = watchLog(),
) {
  const node = await startNode(log);
  const sent: SentRequest[] = [];
  const faults: unknown[] = [];
  const logged: string[] = [];
  const write = (fields: object, message: string): void => {
    logged.push(JSON.stringify({ ...fields, message }));
  };
  const deliveries = createMemoryDeliveryStore();
  const context: AttemptContext = {
    ...{ ...node, deliveries, agent: 'Strata-Webhook/0.0.0', onAttempted: () => undefined },
    log: { debug: write, info: write, warn: write, error: write },
    outgoing: {
      check: async () => null,
      checkEndpoint: async () => null,
      send: async (request) => {
        const { host } = new URL(request.url);
        const delivery = request.headers['x-service-delivery'] ?? '';
        const one = { host, delivery, at: node.clock.now(), request };
        sent.push(one);
        return behave(one);
      },
    },
  };
  const due = createMemoryDeliveries(log);
  const leaving = new AbortController();
  const newDispatcher = (): Dispatcher =>
    createDispatcher({
      ...{ due, clock: node.clock, alarm: node.clock },
      attempt: (delivery) => attemptDelivery(context, delivery, leaving.signal),
      receiverOf: async (account, webhook) => {
        const found = await findWebhook(context, { account, selection: ALL_REPOSITORIES }, webhook);
        return 'refused' in found ? webhook : new URL(found.url).host;
      },
      onFault: (cause) => faults.push(cause),
    });
  let dispatcher = newDispatcher();
  log.subscribe({
    after: await log.head(),
    categories: [webhookDeliveries.category],
    onEvents: (batch) => onDeliveryEvents(node.entities, dispatcher, batch),
  });
  const ending = new AbortController();
  startEmbeddedEngine({
    workflows: [carriedOut(webhookDelivery, createWebhookDeliverySteps(context))],
    events: log,
    timers: createMemoryTimers(log, [webhookDelivery]),
    lead: { whenever: (_name, work) => leadAlone(work(ending.signal), ending) },
    ...{ clock: node.clock, alarm: node.clock },
    onFault: (_workflow, cause) => faults.push(cause),
  });

  return {
    ...{ node, context, sent, faults, logged, due, log },
    running: () => dispatcher.running(),
    /** Starts a new dispatcher as another process would; attempts of the previous one continue. */
    takeOver: async (): Promise<void> => {
      dispatcher = newDispatcher();
      await dispatcher.start();
    },
    account: (username: string) => newAccount(node, username),
    webhook: async (account: AccountId, host: string): Promise<WebhookId> => {
      const wanted = { url: `https://${host}/hook`, events: ['push'], active: true } as const;
      const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
      return accepted(await createWebhook(context, origin, wanted, newWebhookSecret())).webhook.id;
    },
    /** Requests a delivery; the dispatcher learns of it from the log. */
    request: async (
      account: AccountId,
      webhookId: WebhookId,
      repositoryId: RepositoryId | null = null,
      notBefore: Timestamp | null = null,
    ): Promise<WebhookDeliveryId> => {
      const eventId = node.ids.next<EventId>();
      const [payloadSha256 = ''] = await storePayloads(context, account, [{ eventId, body: `{"id":"${eventId}"}` }]);
      const wanted = { webhookId, eventId, event: 'push', repositoryId, payloadSha256, notBefore } as const;
      const { deliveryId } = accepted(await requestDelivery(context, { account, cause: CAUSE }, wanted));
      return deliveryId;
    },
    stateOf: async (id: WebhookDeliveryId) => (await node.entities.reload(webhookDeliveries, id)).state,
  };
}

function leadAlone(work: Promise<void>, ending: AbortController): () => Promise<void> {
  return async () => {
    ending.abort();
    await work;
  };
}
