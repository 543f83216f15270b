/**
 * The attack: receivers of every kind, most of them hostile, get deliveries of a real push from a real server. The
 * expected results of the first attempts are a table of the specification's own figures;
 * test/workflows/webhook-delivery/receivers.test.ts covers all later attempts.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { attemptError } from '../../apps/front-door/texts/attempt-errors.ts';
import { WEBHOOK_ANSWER_BYTES_MAX } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ReceiverKind, receiverKinds } from '../support/receiver-kinds.ts';
import { api, commitFile, createAccount, createRepository, git, newWorkTree, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import {
  createWebhook,
  type ListedDelivery,
  listDeliveries,
  untilDeliveries,
  type WebhookReceivers,
  webhookReceivers,
} from '../support/webhook-receiver.ts';

/** The figures of the specification, not the constants of the product. */
const WAITS_SECONDS = [8, 16, 32, 64, 128, 256, 512];

/** The fields that docs/interface.md names. */
const FIELDS = [
  ...['attempt_log', 'attempts', 'created_at', 'error', 'event', 'event_id', 'http_status', 'id'],
  ...['last_attempt_at', 'next_attempt_at', 'response_body', 'status'],
];
const ATTEMPT_FIELDS = ['at', 'detail', 'duration_ms', 'error', 'http_status'];

/** Words that no log line may contain, each placed elsewhere in a scenario. */
const CANARIES = {
  userInformation: 'canary-7f3Kq9-user',
  query: 'canary-7f3Kq9-query',
  path: 'canary-7f3Kq9-path',
  message: 'canary-7f3Kq9-message',
  answer: 'canary-7f3Kq9-answer',
};

describe('After a real push', { concurrent: true }, () => {
  const ending = suiteEnding();
  let receivers: WebhookReceivers;
  let strata: Strata;
  beforeAll(async () => {
    receivers = await webhookReceivers(ending);
    strata = await startNode(ending, await sharedParts(ending), receivers.env);
  });

  /** Pushes one branch, for which webhooks to receivers of these kinds get deliveries. */
  async function pushed(context: TestContext, username: string, kinds: readonly ReceiverKind[]) {
    const account = await createAccount(strata, username);
    const webhooks = await Promise.all(
      kinds.map(async (kind) => {
        const port = await kind.start(context, receivers.authority);
        return createWebhook(strata, account, `https://127.0.0.1:${port}/hook?key=${CANARIES.query}`, ['push']);
      }),
    );
    const remote = await createRepository(strata, account, 'engine');
    const work = await newWorkTree(context);
    await commitFile(work, CANARIES.message, '1');
    await git(work, ['push', '--quiet', remote, 'main']);
    return Promise.all(
      webhooks.map(async ({ id, secret }, index) => {
        const [delivery] = await untilDeliveries(strata, account, id, ([first]) => (first?.attempts ?? 0) > 0);
        assert.ok(delivery !== undefined);
        return { kind: kinds[index], account, webhook: id, secret, delivery };
      }),
    );
  }

  test('the list shows for each receiver the result of its first attempt, and when the next is due', async (context) => {
    const elsewhere = await receivers.start();
    const kinds = receiverKinds(elsewhere.url);
    const perAccount = Math.ceil(kinds.length / 3);
    const deliveries = await Promise.all(
      ['ada', 'bob', 'eve'].map((name, at) =>
        pushed(context, name, kinds.slice(at * perAccount, (at + 1) * perAccount)),
      ),
    );
    assert.equal(deliveries.flat().length, kinds.length);
    for (const { kind, delivery } of deliveries.flat()) assertListed(kind, delivery);
    assert.deepEqual(elsewhere.received, []);
    const log = strata.log();
    for (const { secret } of deliveries.flat()) assert.ok(!log.includes(secret));
    for (const word of [CANARIES.query, CANARIES.message, 'yyyyyyyy', 'zzzzzzzz']) assert.ok(!log.includes(word), word);
  });

  test('each attempt is one line of the log, and nothing in it or around it is secret', async (context) => {
    const account = await createAccount(strata, 'grace');
    const receiver = await startReceiver(context, receivers.authority.issue(['127.0.0.1']), (socket) =>
      socket.end(`HTTP/1.1 500 ${CANARIES.answer}\r\nx: ${CANARIES.answer}\r\n\r\n${CANARIES.answer}`),
    );
    const host = `127.0.0.1:${receiver.port}`;
    const refused = await api(strata, account.token, 'POST', '/v1/webhooks', {
      ...{ url: `https://user:${CANARIES.userInformation}@${host}/`, events: ['push'] },
    });
    assert.equal(refused.status, 422);
    const url = `https://${host}/${CANARIES.path}?key=${CANARIES.query}`;
    const webhook = await createWebhook(strata, account, url, ['push']);
    const rotated = await api(strata, account.token, 'POST', `/v1/webhooks/${webhook.id}/secret`);
    const remote = await createRepository(strata, account, 'engine');
    const work = await newWorkTree(context);
    await commitFile(work, CANARIES.message, CANARIES.message);
    await git(work, ['push', '--quiet', remote, 'main']);
    const [delivery] = await untilDeliveries(strata, account, webhook.id, ([one]) => (one?.attempts ?? 0) >= 2);
    assert.ok(delivery !== undefined && delivery['response_body'] === CANARIES.answer);
    const [shown] = await listDeliveries(strata, account, webhook.id, '?include_payload=true');
    assert.deepEqual(Object.keys(shown ?? {}).toSorted(), [...FIELDS, 'payload'].toSorted());
    assert.ok(JSON.stringify(shown?.['payload']).includes(CANARIES.message));

    const lines = strata
      .log()
      .split('\n')
      .filter((line) => line.includes('Attempted a webhook delivery'));
    const own = lines.filter((line) => line.includes(delivery.id)).map((line) => JSON.parse(line) as object);
    // The server may log the last attempt only after it has recorded it.
    assert.ok(own.length >= delivery.attempts - 1);
    const fields = [
      'account',
      'attempt',
      'delivery',
      'durationMs',
      'error',
      'event',
      'outcome',
      'repository',
      'series',
    ];
    const about = ['hostname', 'level', 'msg', 'pid', 'status', 'time', 'webhook'];
    for (const line of own)
      assert.deepEqual(
        Object.keys(line).filter((name) => ![...fields, ...about].includes(name)),
        [],
      );
    const signatures = receiver.requests.flatMap(
      (request) => request.match(/^x-service-signature[^\r]*: *(.*)$/gim) ?? [],
    );
    assert.ok(signatures.length >= 4, 'signatures with both secrets');
    const { secret } = rotated.body as { readonly secret: string };
    const values = signatures.map((line) => line.replace(/^.*: */, '').trim());
    const metrics = await (await fetch(`${strata.url}/metrics`)).text();
    assert.match(metrics, /strata_webhook_attempt_seconds_count\{outcome="failed"\} \d/);
    for (const word of [webhook.secret, secret, host, ...Object.values(CANARIES), ...values]) {
      assert.ok(!strata.log().includes(word) && !metrics.includes(word), word);
    }
  });

  test('a delivery to an address that is no longer allowed fails immediately, and nothing is sent', async (context) => {
    const lenient = await startNode(context, await sharedParts(context), receivers.env);
    const account = await createAccount(lenient, 'alan');
    const receiver = await receivers.start();
    const webhook = await createWebhook(lenient, account, receiver.url, ['push']);
    const strict = await lenient.restart({ STRATA_ALLOW_PRIVATE_TARGETS: 'false' });
    assert.equal((await api(strict, account.token, 'POST', `/v1/webhooks/${webhook.id}/ping`)).status, 202);
    const [failed] = await untilDeliveries(strict, account, webhook.id, ([one]) => one?.status === 'FAILED');
    const expected = attemptError({ error: 'address-not-public', detail: null });
    assert.deepEqual([failed?.attempts, failed?.['error'], failed?.['http_status']], [1, expected, null]);
    assert.deepEqual([failed?.['next_attempt_at'], receiver.received], [null, []]);
  });
});

function assertListed(kind: ReceiverKind | undefined, delivery: ListedDelivery): void {
  assert.ok(kind !== undefined);
  const { what, httpStatus, error, keptBytes } = kind;
  assert.deepEqual(Object.keys(delivery).toSorted(), FIELDS);
  assert.deepEqual([delivery.event, delivery.attempts], ['push', delivery.attempt_log.length], what);
  for (const attempt of delivery.attempt_log) {
    assert.deepEqual(Object.keys(attempt).toSorted(), ATTEMPT_FIELDS);
    assert.equal(attempt.http_status, httpStatus, what);
    // The platform's error code follows in brackets.
    const shown = attempt.error?.replace(/ \([A-Z0-9_]+\)$/, '') ?? null;
    assert.equal(shown, error === null ? null : attemptError({ error, detail: kind.detail }), what);
    assert.equal(attempt.detail === 'answer-cut', kind.detail === 'answer-cut', what);
  }
  const { status, http_status: last, response_body: body } = delivery;
  assert.deepEqual([status, last], [error === null ? 'SUCCESS' : 'PENDING', httpStatus], what);
  assert.ok(typeof body === 'string' ? body.length <= WEBHOOK_ANSWER_BYTES_MAX : keptBytes === 0, what);
  const { at, duration_ms: durationMs } = delivery.attempt_log.at(-1) ?? { at: '', duration_ms: 0 };
  assert.equal(delivery['last_attempt_at'], at, what);
  const waitMs = (WAITS_SECONDS[delivery.attempts - 1] ?? 0) * 1_000;
  const dueAt = error === null ? null : new Date(Date.parse(at) + durationMs + waitMs).toISOString();
  assert.equal(delivery['next_attempt_at'], dueAt, what);
}
