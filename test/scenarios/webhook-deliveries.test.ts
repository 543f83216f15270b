/** Webhooks told of real pushes: real git, a real server, a real HTTPS receiver. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import {
  createWebhook,
  listDeliveries,
  receiverHouse,
  signatureOf,
  untilDeliveries,
} from '../support/webhook-receiver.ts';

const ZERO = '0'.repeat(40);

describe('Webhook deliveries', () => {
  test('tell a receiver of the first push: create and push, signed over the raw body, listed as delivered', async (context) => {
    const house = await receiverHouse(context);
    const strata = await startNode(context, await sharedParts(context), house.env);
    const ada = await createAccount(strata, 'ada');
    const receiver = await house.receiver();
    const webhook = await createWebhook(strata, ada, receiver.url);
    const remote = await createRepository(strata, ada, 'engine');
    const work = await newWorkTree(context);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['push', '--quiet', remote, 'main']);

    const [created, pushed] = await receiver.until(2);
    assert.ok(created !== undefined && pushed !== undefined);
    assert.deepEqual([created.payload.type, pushed.payload.type], ['create', 'push']);
    for (const { headers, raw, payload } of [created, pushed]) {
      assert.equal(headers['x-service-signature'], signatureOf(webhook.secret, raw));
      assert.equal(headers['x-service-event'], payload.type);
      assert.equal(headers['x-service-event-id'], payload.id);
      assert.equal(headers['content-type'], 'application/json');
      assert.match(headers['user-agent'] ?? '', /^Strata-Webhook\/\d+\.\d+\.\d+$/);
      assert.equal(headers['x-service-signature-previous'], undefined);
      assert.deepEqual([payload.ref, payload.before, payload.after], ['refs/heads/main', ZERO, head]);
    }
    const deliveries = await untilDeliveries(strata, ada, webhook.id, (list) =>
      list.every(({ status }) => status === 'SUCCESS'),
    );
    assert.deepEqual(
      deliveries.map(({ id, event, attempts }) => [id, event, attempts]),
      [pushed, created].map(({ headers, payload }) => [headers['x-service-delivery'], payload.type, 1]),
    );
    const [shown] = await listDeliveries(strata, ada, webhook.id, '?limit=1&include_payload=true');
    assert.deepEqual(shown?.['payload'], pushed.payload);
    await commitFile(work, 'more', 'x');
  });
});
