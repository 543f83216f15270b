/** Several servers of which one delivers, and a server that stops while a receiver does not answer. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { api, commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

describe('Deliveries of several servers', { concurrent: true }, () => {
  test('continue when the delivering server freezes, and are not repeated when it resumes', async (context) => {
    const receivers = await webhookReceivers(context);
    const parts = await sharedParts(context);
    const leader = await startNode(context, parts, receivers.env);
    const other = await startNode(context, parts, receivers.env);
    const ada = await createAccount(leader, 'ada');
    const receiver = await receivers.start();
    const webhook = await createWebhook(leader, ada, receiver.url);
    const ping = () => api(other, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`);
    await ping();
    await receiver.until(1);
    leader.process.kill('SIGSTOP');
    context.onTestFinished(() => void leader.process.kill('SIGCONT'));
    await ping();
    await receiver.until(2);
    leader.process.kill('SIGCONT');
    await ping();
    await receiver.until(3);
    await untilDeliveries(leader, ada, webhook.id, (list) => list.every((d) => d.status === 'SUCCESS'));
    assert.equal(receiver.received.length, 3);
  });

  test('are made once, whichever server accepted the push, and by the other when the delivering server dies', async (context) => {
    const receivers = await webhookReceivers(context);
    const parts = await sharedParts(context);
    const leader = await startNode(context, parts, receivers.env);
    const other = await startNode(context, parts, receivers.env);
    const ada = await createAccount(leader, 'ada');
    const receiver = await receivers.start();
    const webhook = await createWebhook(leader, ada, receiver.url, ['push']);
    await createRepository(leader, ada, 'engine');
    const work = await newWorkTree(context);
    const remoteOf = (node: typeof leader) => {
      const url = new URL(`${node.url}/r/ada/engine.git`);
      url.username = 'ada';
      url.password = ada.token;
      return url.href;
    };
    await git(work, ['push', '--quiet', remoteOf(other), 'main']);
    await receiver.until(1);
    await commitFile(work, 'two', '2');
    await git(work, ['push', '--quiet', remoteOf(leader), 'main']);
    await receiver.until(2);
    // A delivery that was made but not recorded would correctly be made again.
    await untilDeliveries(other, ada, webhook.id, (list) => list.every((d) => d.status === 'SUCCESS'));
    await leader.kill();
    const third = await commitFile(work, 'three', '3');
    await git(work, ['push', '--quiet', remoteOf(other), 'main']);
    const received = await receiver.until(3);
    assert.equal(received[2]?.payload.after, third);
    const pinged = await api(other, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`);
    assert.equal(pinged.status, 202);
    await receiver.until(4);
    const done = await untilDeliveries(other, ada, webhook.id, (list) => list.every((d) => d.status === 'SUCCESS'));
    assert.deepEqual(
      done.map(({ event, attempts }) => [event, attempts]),
      [['ping', 1], ...Array.from({ length: 3 }, () => ['push', 1])],
    );
    assert.equal(receiver.received.length, 4);
  });

  test('keep no server from stopping: it abandons an attempt without an answer, and records nothing about it', async (context) => {
    const receivers = await webhookReceivers(context);
    const parts = await sharedParts(context);
    const strata = await startNode(context, parts, receivers.env);
    const ada = await createAccount(strata, 'ada');
    const receiver = await receivers.start(() => undefined);
    const webhook = await createWebhook(strata, ada, receiver.url);
    await api(strata, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`);
    await receiver.until(1);
    assert.equal(await strata.stop(), 0);
    const types = (await parts.log.since())
      .map(({ type }) => type)
      .filter((type) => type.startsWith('WebhookDelivery'));
    assert.deepEqual(types, ['WebhookDeliveryRequested', 'WebhookDeliveryAttemptClaimed']);
    assert.doesNotMatch(strata.log(), /"level":50/);
  });
});
