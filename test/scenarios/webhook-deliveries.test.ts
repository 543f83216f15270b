/** Webhook deliveries for real pushes: real git, a real server, real HTTPS receivers. */
import assert from 'node:assert/strict';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import type { Behaviour } from '../support/receiver.ts';
import type { Strata } from '../support/strata.ts';
import { type Account, api, commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import {
  answeringStatus,
  createWebhook,
  listDeliveries,
  NO_CONTENT,
  type Payload,
  signatureOf,
  untilDeliveries,
  type WebhookReceivers,
  webhookReceivers,
} from '../support/webhook-receiver.ts';

const ZERO = '0'.repeat(40);

describe('Webhook deliveries', { concurrent: true }, () => {
  let receivers: WebhookReceivers;
  let strata: Strata;

  const ending = suiteEnding();
  beforeAll(async () => {
    receivers = await webhookReceivers(ending);
    strata = await startNode(ending, await sharedParts(ending), receivers.env);
  });

  async function hooked(context: TestContext, username: string, ...behaviours: readonly Behaviour[]) {
    const account = await createAccount(strata, username);
    const receiver = await receivers.start(...behaviours);
    const webhook = await createWebhook(strata, account, receiver.url);
    const remote = await createRepository(strata, account, 'engine');
    const work = await newWorkTree(context);
    const idOf = async (revision: string) => (await git(work, ['rev-parse', revision])).trim();
    const push = (...refs: string[]) => git(work, ['push', '--quiet', '--force', remote, ...refs]);
    const all = (status: string) =>
      untilDeliveries(strata, account, webhook.id, (list) => list.every((delivery) => delivery.status === status));
    return { account, receiver, webhook, work, idOf, push, all };
  }

  const post = (account: Account, target: string) => api(strata, account.token, 'POST', target);

  /** Returns the changes of refs, newest first. */
  async function activityOf({ username, token }: Account): Promise<readonly { readonly id: string }[]> {
    const { body } = await api(strata, token, 'GET', `/v1/repos/${username}/engine/activity`);
    return (body as { readonly activity: readonly { readonly id: string }[] }).activity;
  }

  test('are signed over the raw body, and listed as the receiver got them', async (context) => {
    const { account, receiver, webhook, idOf, push, all } = await hooked(context, 'ada');
    const head = await idOf('HEAD');
    await push('main');
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
    const deliveries = await all('SUCCESS');
    assert.deepEqual(
      deliveries.map(({ id, event, event_id, attempts }) => [id, event, event_id, attempts]),
      [pushed, created].map(({ headers, payload }) => [headers['x-service-delivery'], payload.type, payload.id, 1]),
    );
    const [shown] = await listDeliveries(strata, account, webhook.id, '?limit=1&include_payload=true');
    assert.deepEqual(shown?.['payload'], pushed.payload);
    const { http_status: status, error, next_attempt_at: next } = shown ?? {};
    assert.deepEqual([status, error, next], [204, null, null]);
    assert.ok(!strata.log().includes(webhook.secret) && !strata.log().includes(receiver.url), 'neither is logged');
    const metrics = await (await fetch(`${strata.url}/metrics`)).text();
    assert.match(metrics, /strata_webhook_attempt_seconds_count\{outcome="succeeded"\} \d/);
    assert.match(metrics, /strata_webhook_deliveries_pending \d/);
  });

  test('fire for a restoration as for a push, and again when it is undone; none for a dry run', async (context) => {
    const { account, receiver, work, idOf, push, all } = await hooked(context, 'hedy');
    const first = await idOf('HEAD');
    await push('main', 'main:topic');
    const [pushed] = await activityOf(account);
    const forced = await commitFile(work, 'other', 'x');
    await push('main', ':topic', 'main:later');
    const before = (await receiver.until(8)).length;
    const restore = async (body: object) => {
      const answer = await api(strata, account.token, 'POST', '/v1/repos/hedy/engine/restore', body);
      assert.equal(answer.status, 200, answer.text);
      return answer.body as { readonly event_id: string | null };
    };
    const moves = (from: number) =>
      receiver.received
        .slice(from)
        .map(({ payload: { type, ref, before: was, after } }) => `${type} ${ref} ${was} ${after}`);
    await restore({ event_id: pushed?.id, dry_run: true });
    const { event_id: restoration } = await restore({ event_id: pushed?.id });
    await receiver.until(before + 4);
    const [main, later, topic] = ['main', 'later', 'topic'].map((name) => `refs/heads/${name}`);
    const restored = [
      `create ${topic} ${ZERO} ${first}`,
      `delete ${later} ${forced} ${ZERO}`,
      `push ${main} ${forced} ${first}`,
      `push ${topic} ${ZERO} ${first}`,
    ];
    assert.deepEqual(moves(before).toSorted(), restored);
    await restore({ before_event_id: restoration });
    await receiver.until(before + 8);
    const undone = [
      `create ${later} ${ZERO} ${forced}`,
      `delete ${topic} ${first} ${ZERO}`,
      `push ${later} ${ZERO} ${forced}`,
      `push ${main} ${first} ${forced}`,
    ];
    assert.deepEqual(moves(before + 4).toSorted(), undone);
    assert.equal((await all('SUCCESS')).length, before + 8, 'the dry run caused none');
  });

  test('report every kind of ref update in the order of the log: commits, forced pushes, tags, deletions, many refs', async (context) => {
    const { receiver, work, idOf, push, all } = await hooked(context, 'grace');
    await push('main');
    const first = await idOf('HEAD');
    const second = await commitFile(work, 'two', '2');
    const third = await commitFile(work, 'three', '3');
    await push('main');
    await git(work, ['tag', 'light']);
    await git(work, ['tag', '-a', '-m', 'The first release', 'v1', first]);
    await git(work, ['branch', 'topic']);
    await git(work, ['notes', 'add', '-m', 'a note']);
    await push('light', 'v1', 'topic', 'refs/notes/commits');
    await git(work, ['reset', '--quiet', '--hard', first]);
    const forced = await commitFile(work, 'other', 'x');
    await push('main');
    await push(':topic', ':light', ':v1');

    const received = (await receiver.until(13)).map(({ payload }) => payload);
    const moves = received.map(({ type, ref }) => `${type} ${ref.replace('refs/', '')}`);
    assert.deepEqual(moves.slice(0, 3), ['create heads/main', 'push heads/main', 'push heads/main']);
    const perRef = (ref: string) => moves.slice(3, 9).filter((move) => move.endsWith(ref));
    for (const ref of ['tags/light', 'tags/v1', 'heads/topic'])
      assert.deepEqual(perRef(ref), [`create ${ref}`, `push ${ref}`]);
    assert.equal(moves[9], 'push heads/main');
    assert.deepEqual(moves.slice(10).toSorted(), ['delete heads/topic', 'delete tags/light', 'delete tags/v1']);
    assert.equal((await all('SUCCESS')).length, 13, 'notes cause no delivery');

    const find = (type: string, ref: string, after?: string) => {
      const found = received.find(
        (p) => p.type === type && p.ref === ref && (after === undefined || p.after === after),
      );
      assert.ok(found !== undefined, `${type} ${ref}`);
      return found;
    };
    const moved = find('push', 'refs/heads/main', third);
    const commitIds = ({ commits }: Payload) => commits.map(({ id }) => id);
    assert.deepEqual(commitIds(moved), [second, third], 'oldest first');
    assert.equal(moved.commits[1]?.message, 'Write three\n');
    assert.deepEqual(commitIds(find('push', 'refs/heads/main', forced)), [forced]);
    assert.deepEqual(find('create', 'refs/heads/topic').commits, [], 'the branch has no new commits');
    assert.deepEqual(find('push', 'refs/tags/v1')['tag'], {
      ...{ name: 'v1', target: first, annotated: true, message: 'The first release\n' },
      tagger: { name: 'C O Mitter', email: 'committer@example.org' },
    });
    assert.equal(find('push', 'refs/tags/v1').after, await idOf('refs/tags/v1'), 'the tag object');
    assert.deepEqual(find('push', 'refs/tags/light')['tag'], {
      ...{ name: 'light', target: third, annotated: false, message: null, tagger: null },
    });
    const deleted = find('delete', 'refs/heads/topic');
    assert.deepEqual(
      [deleted.before, deleted.after, deleted['deleted'], deleted['head_commit']],
      [third, ZERO, true, null],
    );
    const repository = deleted['repository'] as { readonly default_branch: string; readonly full_name: string };
    assert.deepEqual([repository.default_branch, repository.full_name], ['main', 'grace/engine']);
  });

  test('that fail are retried after 8 seconds, with the same bytes, signature and id', async (context) => {
    const failing = answeringStatus(503, 'come back later');
    const { receiver, webhook, account, push } = await hooked(context, 'edsger', failing, NO_CONTENT);
    await push('main');
    const waiting = await untilDeliveries(strata, account, webhook.id, ([pushed, created]) =>
      [pushed?.status, created?.attempts].every((value) => value === 'SUCCESS' || value === 1),
    );
    const pending = waiting.find(({ event }) => event === 'create');
    assert.equal(pending?.status, 'PENDING');
    assert.deepEqual(
      [pending['http_status'], pending['error'], pending['response_body']],
      [503, 'The receiver did not answer 2xx', 'come back later'],
    );
    assert.ok(typeof pending['next_attempt_at'] === 'string');
    const received = await receiver.until(3);
    const [before, , again] = received;
    assert.ok(before !== undefined && again !== undefined);
    assert.deepEqual([again.raw, again.headers], [before.raw, before.headers]);
    const done = await untilDeliveries(strata, account, webhook.id, (list) =>
      list.every((d) => d.status === 'SUCCESS'),
    );
    const [one, two] = done.find(({ event }) => event === 'create')?.attempt_log ?? [];
    assert.ok(one !== undefined && two !== undefined);
    const waitedMs = Date.parse(two.at) - (Date.parse(one.at) + one.duration_ms);
    assert.ok(waitedMs >= 8_000, `${waitedMs} ms`);
  });

  test('that fail twice are retried 8 and then 16 seconds after the end of the previous attempt', async (context) => {
    const failing = answeringStatus(500);
    const { receiver, webhook, account } = await hooked(context, 'donald', failing, failing, answeringStatus(200));
    await post(account, `/v1/webhooks/${webhook.id}/ping`);
    await receiver.until(3);
    const [delivery] = await untilDeliveries(strata, account, webhook.id, ([only]) => only?.status === 'SUCCESS');
    const log = delivery?.attempt_log ?? [];
    const endedMs = log.map(({ at, duration_ms: durationMs }) => Date.parse(at) + durationMs);
    const waitsMs = log.slice(1).map(({ at }, index) => Date.parse(at) - (endedMs[index] ?? 0));
    await context.annotate(`waited ${waitsMs.join(' and ')} ms`);
    const [first = 0, second = 0] = waitsMs;
    assert.equal(waitsMs.length, 2);
    assert.ok(first >= 8_000 && second >= 16_000, `${waitsMs}`);
    const [one, ...others] = receiver.received;
    for (const other of others) assert.deepEqual([other.raw, other.headers], [one?.raw, one?.headers]);
  });

  test('follow no redirect, and survive connections that break off', async (context) => {
    const elsewhere = await receivers.start();
    const redirect = answeringStatus(302);
    const { webhook, account, push } = await hooked(
      context,
      'barbara',
      (socket) => socket.end(`HTTP/1.1 302 Found\r\nlocation: ${elsewhere.url}\r\ncontent-length: 0\r\n\r\n`),
      (socket) => socket.destroy(),
      redirect,
    );
    await push('main');
    const list = await untilDeliveries(
      strata,
      account,
      webhook.id,
      (found) => found.length === 2 && found.every((d) => d.attempts > 0),
    );
    assert.deepEqual(
      list.toReversed().map((d) => [d.event, d.status, d['http_status']]),
      [
        ['create', 'PENDING', 302],
        ['push', 'PENDING', null],
      ],
    );
    assert.match(String(list[0]?.['error']), /^The receiver closed the connection/);
    assert.equal(elsewhere.received.length, 0);
  });

  test('of pings go to one webhook, listed or not; one to an inactive webhook fails immediately and can be redelivered', async (context) => {
    const { receiver, webhook, account } = await hooked(context, 'alan');
    const other = await receivers.start();
    await createWebhook(strata, account, other.url, ['ping']);
    const pinged = await post(account, `/v1/webhooks/${webhook.id}/ping`);
    assert.equal(pinged.status, 202, pinged.text);
    const [ping] = await receiver.until(1);
    assert.deepEqual(pinged.body, { event_id: ping?.payload.id, delivery_id: ping?.headers['x-service-delivery'] });
    assert.deepEqual(ping?.payload['webhook'], {
      ...{ id: webhook.id, url: receiver.url, events: ['push', 'create', 'delete'], active: true },
    });
    assert.deepEqual(ping.payload['owner'], { id: account.id, username: 'alan' });

    const activate = (active: boolean) => api(strata, account.token, 'PUT', `/v1/webhooks/${webhook.id}`, { active });
    await activate(false);
    const second = (await post(account, `/v1/webhooks/${webhook.id}/ping`)).body as { readonly delivery_id: string };
    const stateOf = async (status: string) => {
      const list = await untilDeliveries(strata, account, webhook.id, ([newest]) => newest?.status === status);
      return list[0];
    };
    const failed = await stateOf('FAILED');
    assert.deepEqual([failed?.id, failed?.attempts, failed?.['next_attempt_at']], [second.delivery_id, 1, null]);
    assert.equal(failed?.['error'], 'The webhook is not active');
    await activate(true);
    const again = await post(account, `/v1/webhooks/${webhook.id}/deliveries/${second.delivery_id}/redeliver`);
    assert.equal(again.status, 202, again.text);
    const delivered = await stateOf('SUCCESS');
    assert.deepEqual([delivered?.id, delivered?.attempts], [second.delivery_id, 2]);
    assert.equal((await receiver.until(2))[1]?.headers['x-service-delivery'], second.delivery_id);
    assert.equal(other.received.length, 0);
    const unknown = `/v1/webhooks/${webhook.id}/deliveries/${webhook.id}/redeliver`;
    assert.equal((await post(account, unknown)).status, 404);
  });

  test('are also signed with the previous secret for a day after a rotation', async (context) => {
    const { receiver, webhook, account } = await hooked(context, 'tony');
    const rotated = await post(account, `/v1/webhooks/${webhook.id}/secret`);
    const { secret } = rotated.body as { readonly secret: string };
    await post(account, `/v1/webhooks/${webhook.id}/ping`);
    const [ping] = await receiver.until(1);
    assert.ok(ping !== undefined);
    assert.equal(ping.headers['x-service-signature'], signatureOf(secret, ping.raw));
    assert.equal(ping.headers['x-service-signature-previous'], signatureOf(webhook.secret, ping.raw));
  });
});
