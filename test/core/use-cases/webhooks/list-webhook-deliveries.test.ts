/** Deliveries as the owner of their webhook sees them. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { decodeUtf8Lossy, encodeUtf8 } from '../../../../core/git/utf8.ts';
import type { LogPosition } from '../../../../core/kernel/envelope.ts';
import type { EventId, WebhookDeliveryId } from '../../../../core/kernel/ids.ts';
import { execute } from '../../../../core/runtime/execute.ts';
import {
  listWebhookDeliveries,
  listWebhookHealths,
  WEBHOOK_HEALTH_DELIVERIES_MAX,
} from '../../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import { pingWebhook, redeliver } from '../../../../core/use-cases/webhooks/webhook-deliveries.ts';
import { createWebhook } from '../../../../core/use-cases/webhooks/webhooks.ts';
import type { WebhookDeliveryCommand } from '../../../../core/webhook-delivery/commands.ts';
import { decideWebhookDelivery } from '../../../../core/webhook-delivery/decide.ts';
import { webhookDeliveries } from '../../../../core/webhook-delivery/evolve.ts';
import { accepted, codeOf, newAccount } from '../../../support/accounts.ts';
import { newStream } from '../../../support/events.ts';
import { createMemoryDeliveryStore } from '../../../support/memory/delivery-store.ts';
import { CAUSE } from '../../../support/node.ts';
import { startReading } from '../../../support/reading.ts';

async function started() {
  const { node: base, account } = await startReading();
  const deliveries = createMemoryDeliveryStore();
  const outgoing = { check: async () => null, send: () => Promise.reject(new Error('Nothing is sent here')) };
  const node = { ...base, deliveries, outgoing };
  const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
  const wanted = { url: 'https://receiver.example/', events: ['push'], active: true } as const;
  const { webhook } = accepted(await createWebhook(node, origin, wanted, newWebhookSecret()));
  const ping = async () => accepted(await pingWebhook(node, origin, webhook.id));
  const decide = async (id: WebhookDeliveryId, command: WebhookDeliveryCommand) =>
    accepted(await execute(node, webhookDeliveries, id, origin, (state) => decideWebhookDelivery(state, command)));
  /** Makes an attempt that the receiver answers with this status and body, which is stored. */
  const attempt = async (id: WebhookDeliveryId, series: number, status: number, body: string): Promise<void> => {
    const startedAt = node.clock.now();
    await decide(id, { type: 'ClaimAttempt', claimId: node.ids.next(), now: startedAt });
    await deliveries.putAnswer({
      ...{ delivery: id, series, attempt: 1, account, eventId: node.ids.next<EventId>() },
      ...{ body: encodeUtf8(body), storedAt: startedAt },
    });
    const result = { kind: 'answered', status, answerSha256: base.digest.sha256(body), detail: null } as const;
    await decide(id, { type: 'RecordAttempt', series, attempt: 1, startedAt, durationMs: 5, result });
  };
  const list = async (more: { readonly limit?: number; readonly withPayloads?: boolean } = {}) => {
    const seen = await node.entities.barrier();
    const wanted = { viewer: origin, webhook: webhook.id, seen, limit: 50, withPayloads: false, ...more };
    return accepted(await listWebhookDeliveries(node, wanted));
  };
  return { node, account, origin, webhook: webhook.id, deliveries, ping, attempt, list };
}

const textOf = (bytes: Uint8Array | null | undefined): string | null => (bytes == null ? null : decodeUtf8Lossy(bytes));

describe('Deliveries of a webhook', () => {
  test('are listed newest first, as many as requested', async () => {
    const { ping, list } = await started();
    const requested = [await ping(), await ping(), await ping()].map(({ deliveryId }) => deliveryId);
    const ids = async (limit?: number) =>
      (await list(limit === undefined ? {} : { limit })).map(({ delivery }) => delivery.id);
    assert.deepEqual(await ids(), requested.toReversed());
    assert.deepEqual(await ids(2), requested.toReversed().slice(0, 2));
  });

  test('show the answer to their last attempt, even after a redelivery began', async () => {
    const { node, origin, webhook, ping, attempt, list } = await started();
    const { deliveryId } = await ping();
    assert.equal((await list())[0]?.answer, null, 'nothing was attempted');
    await attempt(deliveryId, 1, 200, 'first');
    assert.equal(textOf((await list())[0]?.answer), 'first');
    accepted(await redeliver(node, origin, webhook, deliveryId));
    assert.equal(textOf((await list())[0]?.answer), 'first', 'the next attempt is still to come');
    await attempt(deliveryId, 2, 200, 'second');
    const [shown] = await list();
    assert.equal(textOf(shown?.answer), 'second');
    assert.equal(shown?.delivery.attemptLog.length, 2);
  });

  test('show payloads only on request, and neither payloads nor answers that are no longer stored', async () => {
    const { account, deliveries, ping, attempt, list } = await started();
    const { deliveryId, eventId } = await ping();
    await attempt(deliveryId, 1, 200, 'answer');
    assert.equal((await list())[0]?.payload, null);
    const [shown] = await list({ withPayloads: true });
    assert.match(shown?.payload ?? '', new RegExp(`"id":"${eventId}"`));
    await deliveries.forgetAccount(account);
    const [forgotten] = await list({ withPayloads: true });
    assert.deepEqual([forgotten?.payload, forgotten?.answer], [null, null]);
  });

  test("of another account's webhook get the same refusal as those of an unknown one", async () => {
    const { node, webhook } = await started();
    const other = await newAccount(node, 'bob');
    const seen = await node.entities.barrier();
    const wanted = {
      viewer: { account: other, selection: ALL_REPOSITORIES },
      webhook,
      seen,
      limit: 50,
      withPayloads: false,
    };
    assert.equal(codeOf(await listWebhookDeliveries(node, wanted)), 'webhook-not-found');
  });

  test('are listed after the model includes the log that the caller has seen', async () => {
    const { node, origin, webhook } = await started();
    const seen = await node.entities.barrier();
    const order: string[] = [];
    const readModels: typeof node.readModels = {
      ...node.readModels,
      caughtUp: async (position) => void order.push(`seen ${position === seen}`),
      webhookDeliveries: async () => {
        order.push('read');
        return [];
      },
    };
    accepted(
      await listWebhookDeliveries(
        { ...node, readModels },
        { viewer: origin, webhook, seen, limit: 1, withPayloads: false },
      ),
    );
    assert.deepEqual(order, ['seen true', 'read']);
  });

  test('are counted without a read of the pushes of those that are still to be made', async () => {
    const { node, account, origin, webhook, ping, attempt } = await started();
    await attempt((await ping()).deliveryId, 1, 200, 'early');
    node.clock.advance(60_000);
    const row = { push: node.ids.next<EventId>(), stream: newStream(), revision: 0, position: 2n as LogPosition };
    const of = { account, webhook, createdAt: node.clock.now(), kinds: ['push'] } as const;
    await node.waiting.add({ ...row, ...of, passed: 0, waiting: 3 }, []);
    node.clock.advance(60_000);
    await attempt((await ping()).deliveryId, 1, 500, 'late');
    const seen = await node.entities.barrier();
    const events = { ...node.events, readStream: () => assert.fail('a push may be large') };
    const [health] = await listWebhookHealths({ ...node, events }, origin, seen);
    assert.deepEqual([health?.succeeded, health?.failed, health?.pending], [1, 0, 4]);
    await node.waiting.add(
      { ...row, ...of, push: node.ids.next(), position: 3n as LogPosition, passed: 0, waiting: 90 },
      [],
    );
    const [later] = await listWebhookHealths({ ...node, events }, origin, seen);
    assert.deepEqual([later?.succeeded, later?.failed, later?.pending], [0, 0, WEBHOOK_HEALTH_DELIVERIES_MAX]);
  });
});
