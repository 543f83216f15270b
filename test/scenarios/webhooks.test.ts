/**
 * Webhooks on real servers: a webhook created on one node is shown by another, and each node's setting decides which
 * addresses are allowed.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { admin, api, createAccount } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface WebhookObject {
  readonly id: string;
  readonly secret?: string;
}

describe('Webhooks on two nodes', () => {
  test('are shown by both together, changed to private addresses only by the node that allows them, and kept over a restart', async (context) => {
    const parts = await sharedParts(context);
    const strict = await startNode(context, parts);
    const lenient = await startNode(context, parts, { STRATA_ALLOW_PRIVATE_TARGETS: 'true' });
    const ada = await createAccount(strict, 'ada');
    // No request is sent: whether a host name resolves depends on the machine, so the URL has an address.
    const created = await api(strict, ada.token, 'POST', '/v1/webhooks', {
      url: 'https://8.8.8.8/hook',
      events: ['push'],
    });
    assert.equal(created.status, 201, created.text);
    const { secret, ...webhook } = created.body as WebhookObject;
    assert.match(secret ?? '', /^whsec_/);
    assert.deepEqual((await api(lenient, ada.token, 'GET', '/v1/webhooks')).body, { webhooks: [webhook] });

    const { port } = new URL(strict.url);
    const changeTo = (node: typeof strict, url: string) =>
      api(node, ada.token, 'PUT', `/v1/webhooks/${webhook.id}`, { url });
    for (const url of ['https://127.0.0.1:9443/', 'https://localhost:9443/', 'https://10.1/']) {
      assert.equal((await changeTo(strict, url)).status, 422, url);
      assert.equal((await changeTo(lenient, url)).status, 200, url);
    }
    assert.equal((await changeTo(strict, `https://localhost:${port}/`)).status, 422);
    assert.equal(
      (await changeTo(lenient, `https://localhost:${new URL(lenient.url).port}/`)).status,
      422,
      'the URL of the node itself',
    );
    const shown = await api(strict, ada.token, 'GET', `/v1/webhooks/${webhook.id}`);
    assert.deepEqual(((await admin(strict, ['log', 'verify', '--references'])) as { faults: string[] }).faults, []);
    const again = await strict.restart();
    assert.deepEqual((await api(again, ada.token, 'GET', `/v1/webhooks/${webhook.id}`)).body, shown.body);
    const written = JSON.stringify(await parts.log.since(), (_, value: unknown) =>
      typeof value === 'bigint' ? '' : value,
    );
    assert.ok(written.includes('WebhookUrlChanged'));
    for (const word of [secret ?? '', '8.8.8.8', 'localhost:9443']) assert.ok(!written.includes(word), word);
    assert.ok(!`${strict.log()}${lenient.log()}${again.log()}`.includes(secret ?? ''));
  });

  test('are limited to twenty an account, however many are created at the same time, on whichever node', async (context) => {
    const parts = await sharedParts(context);
    const nodes = [await startNode(context, parts), await startNode(context, parts)] as const;
    const ada = await createAccount(nodes[0], 'ada');
    const create = (at: number) =>
      api(nodes[at % 2 === 0 ? 0 : 1], ada.token, 'POST', '/v1/webhooks', {
        ...{ url: `https://8.8.8.8/${at}`, events: ['push'] },
      });
    const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => create(at)));
    const created = answers.filter(({ status }) => status === 201);
    assert.equal(created.length, 20);
    for (const { status, body } of answers.filter((answer) => !created.includes(answer))) {
      assert.deepEqual([status, body], [422, { detail: 'An account has at most 20 webhooks' }]);
    }
    const ids = created.map(({ body }) => (body as WebhookObject).id).toSorted();
    for (const node of nodes) {
      const { webhooks } = (await api(node, ada.token, 'GET', '/v1/webhooks')).body as {
        readonly webhooks: readonly WebhookObject[];
      };
      assert.deepEqual(webhooks.map(({ id }) => id).toSorted(), ids);
      assert.equal((await create(nodes.indexOf(node))).status, 422, 'the 21st webhook is refused on either node');
    }
    assert.equal((await api(nodes[0], ada.token, 'DELETE', `/v1/webhooks/${ids[0]}`)).status, 204);
    assert.equal((await create(1)).status, 201, 'the other node allows a new webhook immediately');
    assert.equal((await create(0)).status, 422);
  });
});
