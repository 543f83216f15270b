/** Deliveries beyond an hour's: a real push to many webhooks, whose deliveries wait as one row for each webhook. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { DEFAULT_PLANS } from '../../core/account/plans.ts';
import { WEBHOOKS_MAX } from '../../core/kernel/limits.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { WEBHOOK_PUSH_REFS_MAX } from '../../core/webhook-delivery/notifications.ts';
import { cleanUp } from '../support/cleanup.ts';
import { killSample } from '../support/kill-sample.ts';
import { keepLog } from '../support/log.ts';
import type { Strata } from '../support/strata.ts';
import { api, commitFile, createAccount, createRefs, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { createWebhook, listDeliveries, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');
const HOUR_MS = 60 * 60_000;
const MIB = 1024 * 1024;
/** They run beside each other, so that on a busy machine each takes nearly as long as the file may. */
const TEST_SPAN_MS = 7 * 60_000;

async function started(context: TestContext, perHour: number, more: Readonly<Record<string, string>> = {}) {
  const receivers = await webhookReceivers(context);
  const shared = await sharedParts(context);
  const directory = await tempDir(context);
  const [plans, clock] = [path.join(directory, 'plans.json'), path.join(directory, 'ahead-ms')];
  await writeFile(plans, JSON.stringify({ FREE: { ...DEFAULT_PLANS.FREE, deliveries_per_hour: perHour } }));
  // Half an hour is left of the first hour, however late in it the test runs.
  let aheadMs = HOUR_MS * 1.5 - (Date.now() % HOUR_MS);
  await writeFile(clock, String(aheadMs));
  const moved = { NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clock, STRATA_PLANS: plans };
  const strata = await startNode(context, shared, { ...receivers.env, ...moved, ...more });
  const pool = createPool({ connectionString: shared.env['STRATA_DATABASE_URL'] ?? '', log: keepLog() });
  cleanUp(context, () => pool.end());
  const nextHour = async (): Promise<void> => {
    aheadMs += HOUR_MS;
    await writeFile(clock, String(aheadMs));
  };
  const ada = await createAccount(strata, 'ada', 'FREE');
  const remote = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  return { receivers, strata, pool, nextHour, ada, remote, work };
}

async function metric(strata: Strata, name: string): Promise<number> {
  const text = await (await fetch(`${strata.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !(await isSo()); await sleep(200)) assert.ok(Date.now() < deadline);
}

describe('Deliveries beyond those of an hour', { concurrent: true, timeout: TEST_SPAN_MS }, () => {
  test('of four pushes of 1,000 refs to 20 webhooks take little, are counted and are listed', async (context) => {
    const { receivers, strata, pool, ada, remote, work } = await started(context, 250);
    const receiver = await receivers.start();
    const hooks: string[] = [];
    for (let hook = 0; hook < WEBHOOKS_MAX; hook += 1) {
      hooks.push((await createWebhook(strata, ada, receiver.url, ['push'])).id);
    }
    const size = async (): Promise<number> => {
      const text = 'SELECT pg_database_size(current_database())::float8 AS bytes';
      return (await pool.query<{ bytes: number }>(text)).rows[0]?.bytes ?? 0;
    };
    const before = await size();
    const tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    for (let push = 0; push < 4; push += 1) {
      const names = Array.from({ length: WEBHOOK_PUSH_REFS_MAX }, (_, at) => `refs/heads/p${push}-${at}`);
      await createRefs(work, names, tip);
      await git(work, ['push', '--quiet', remote, `refs/heads/p${push}-*:refs/heads/p${push}-*`]);
    }
    const all = 4 * WEBHOOK_PUSH_REFS_MAX * WEBHOOKS_MAX;
    const rows = async () => {
      const text = 'SELECT count(*)::int AS rows, sum(waiting)::int AS waiting FROM webhook_waiting_deliveries';
      return (await pool.query<{ rows: number; waiting: number }>(text)).rows[0];
    };
    await until(async () => (await rows())?.rows === 4 * WEBHOOKS_MAX);
    await until(async () => receiver.received.length === 250);
    assert.deepEqual(await rows(), { rows: 4 * WEBHOOKS_MAX, waiting: all - 250 });
    const grown = (await size()) - before;
    await context.annotate(`the database grew by ${(grown / MIB).toFixed(1)} MiB; before: 77 MiB`);
    assert.ok(grown < 16 * MIB, `${grown} bytes`);
    await until(async () => (await metric(strata, 'strata_webhook_deliveries_pending')) === all - 250);
    const [hook = ''] = hooks;
    const listed = await listDeliveries(strata, ada, hook, '?limit=100&include_payload=true');
    assert.equal(new Set(listed.map(({ id }) => id)).size, 100);
    for (const { status, payload, error, attempts, ...delivery } of listed) {
      assert.deepEqual([status, payload, attempts], ['PENDING', null, 0]);
      assert.match(String(error), /deliveries_per_hour of its plan\) are used up: this one waits until 20/);
      assert.match(String(delivery['next_attempt_at']), /^20/);
    }
    const redeliver = `/v1/webhooks/${hook}/deliveries/${listed[99]?.id}/redeliver`;
    const again = await api(strata, ada.token, 'POST', redeliver);
    assert.deepEqual(
      [again.status, again.body],
      [202, { event_id: listed[99]?.event_id, delivery_id: listed[99]?.id }],
    );
    assert.deepEqual(await rows(), { rows: 4 * WEBHOOKS_MAX, waiting: all - 250 }, 'which makes nothing');
    assert.equal((await api(strata, ada.token, 'DELETE', `/v1/webhooks/${hook}`)).status, 204);
    await until(async () => (await rows())?.rows === 4 * (WEBHOOKS_MAX - 1));
  });

  test('come in their order when their hours come, with the ids that were listed, once, also after a purge', async (context) => {
    const { receivers, strata, nextHour, ada, remote, work } = await started(context, 2);
    const receiver = await receivers.start();
    const { id: hook } = await createWebhook(strata, ada, receiver.url, ['push']);
    await git(work, ['push', '--quiet', remote, 'main', 'main:two']);
    const gone = await commitFile(work, 'gone', 'x');
    await git(work, ['push', '--quiet', remote, 'main:topic', 'main']);
    const list = (query = '') => listDeliveries(strata, ada, hook, query);
    const [fourth, third, ...first] = await untilDeliveries(strata, ada, hook, (found) => found.length === 4);
    assert.deepEqual([fourth?.status, third?.status, first.length], ['PENDING', 'PENDING', 2]);
    const shown = (await list()).map(({ id, event_id }) => [id, event_id]);
    await receiver.until(2);
    await git(work, ['push', '--quiet', '--force', remote, 'HEAD~1:main', ':topic']);
    await until(async () => (await list()).length === 5);
    // It waits until the policy has passed the pushes, and not for the rows.
    const { id } = (await api(strata, ada.token, 'GET', '/v1/repos/ada/engine')).body as { readonly id: string };
    const purge = () => api(strata, ada.token, 'POST', `/v1/repositories/${id}/purge`);
    await until(async () => Number(((await purge()).body as { readonly freed_bytes?: number }).freed_bytes) > 0);
    await nextHour();
    const received = await receiver.until(4);
    await untilDeliveries(
      strata,
      ada,
      hook,
      (found) => found.filter(({ status }) => status === 'SUCCESS').length === 4,
    );
    const made = (await list()).filter(({ status }) => status === 'SUCCESS').map(({ id, event_id }) => [id, event_id]);
    assert.deepEqual(made, shown);
    assert.deepEqual(
      received.slice(2).map(({ payload: { after, commits } }) => [after, commits]),
      [
        [gone, []],
        [gone, []],
      ],
      'the commits are gone, so the deliveries go out without them',
    );
    await nextHour();
    const last = (await receiver.until(5))[4];
    assert.deepEqual([last?.payload.ref, last?.payload.type], ['refs/heads/main', 'push']);
    await untilDeliveries(
      strata,
      ada,
      hook,
      (found) => found.length === 5 && found.every((d) => d.status === 'SUCCESS'),
    );
    assert.equal(receiver.received.length, 5);
  });

  const STEPS: readonly FailpointName[] = [
    'webhook-push-waits',
    'webhook-payload-stored',
    'webhook-delivery-requested',
    'webhook-rows-expanded',
  ];
  const sampled = killSample(STEPS);
  for (const point of STEPS) {
    test(`are made once although the server is killed at ${point}`, sampled(point), async (context) => {
      const { receivers, strata, nextHour, ada, remote, work } = await started(context, 3);
      const receiver = await receivers.start();
      const hooks = [await createWebhook(strata, ada, receiver.url), await createWebhook(strata, ada, receiver.url)];
      const early = point === 'webhook-push-waits';
      const push = () => git(work, ['push', '--quiet', remote, 'main', 'main:two']).catch(() => undefined);
      const fragile = async () => strata.restart({ STRATA_FAILPOINT: point });
      let node: Strata = strata;
      if (early) node = await fragile();
      await push();
      if (!early) {
        await receiver.until(3);
        await until(async () => (await listDeliveries(node, ada, hooks[0]?.id ?? '')).length === 4);
        node = await fragile();
        await nextHour();
      }
      await node.exited();
      node = await node.restart({ STRATA_FAILPOINT: '' });
      for (const count of [3, 6, 8]) {
        await receiver.until(count);
        if (count < 8) await nextHour();
      }
      for (const { id } of hooks) {
        const done = await untilDeliveries(
          node,
          ada,
          id,
          (list) => list.length === 4 && list.every(({ status }) => status === 'SUCCESS'),
        );
        assert.equal(new Set(done.map((delivery) => delivery.id)).size, 4);
        assert.deepEqual(
          done.toReversed().map(({ event }) => event),
          ['create', 'push', 'create', 'push'],
        );
      }
      assert.equal(receiver.received.length, 8);
    });
  }
});
