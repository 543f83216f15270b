/** Several servers, one of which delivers; one that stops though a receiver does not answer. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { api, commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, receiverHouse, untilDeliveries } from '../support/webhook-receiver.ts';

describe('Deliveries of several servers', { concurrency: true }, () => {
  test('go on when the server that delivers freezes, and are not made twice when it thaws', async (context) => {
    const house = await receiverHouse(context);
    const parts = await sharedParts(context);
    const leader = await startNode(context, parts, house.env);
    const other = await startNode(context, parts, house.env);
    const ada = await createAccount(leader, 'ada');
    const receiver = await house.receiver();
    const webhook = await createWebhook(leader, ada, receiver.url);
    const ping = () => api(other, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`);
    await ping();
    await receiver.until(1);
    leader.process.kill('SIGSTOP');
    context.after(() => leader.process.kill('SIGCONT'));
    await ping();
    await receiver.until(2);
    leader.process.kill('SIGCONT');
    await ping();
    await receiver.until(3);
    await untilDeliveries(leader, ada, webhook.id, (list) => list.every((d) => d.status === 'SUCCESS'));
    assert.equal(receiver.received.length, 3);
  });

  test('are made once, whichever took the push, and by the other when the one that delivers dies', async (context) => {
    const house = await receiverHouse(context);
    const parts = await sharedParts(context);
    const leader = await startNode(context, parts, house.env);
    const other = await startNode(context, parts, house.env);
    const ada = await createAccount(leader, 'ada');
    const receiver = await house.receiver();
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
    // One that was made and not recorded would rightly be made again.
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

  test('keep no server from stopping: an attempt that no answer comes to is left, and nothing is recorded of it', async (context) => {
    const house = await receiverHouse(context);
    const parts = await sharedParts(context);
    const strata = await startNode(context, parts, house.env);
    const ada = await createAccount(strata, 'ada');
    const receiver = await house.receiver(() => undefined);
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
