/**
 * The attack: one push of 16 KB creates 2,000 branches in a repository with 20 webhooks, and is repeated. It made
 * 40,000 deliveries, and 194,000 events in the log that all accounts share. What an account may send in an hour is
 * bounded now, and further deliveries wait until their hour as one row for a push and webhook.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { WEBHOOKS_MAX } from '../../../core/kernel/limits.ts';
import { WEBHOOK_PUSH_REFS_MAX } from '../../../core/webhook-delivery/notifications.ts';
import { setStage, underAttack } from '../../support/attack.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { noteFigure } from '../../support/figures.ts';
import { keepLog } from '../../support/log.ts';
import { createRefs, createRepository, git, newWorkTree } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { createWebhook, listDeliveries, webhookReceivers } from '../../support/webhook-receiver.ts';

const REFS = 2_000;
const PER_HOUR = 250;
/** The first 1,000 refs are new: `create` and `push` of each. */
const DELIVERIES = WEBHOOK_PUSH_REFS_MAX * 2 * WEBHOOKS_MAX;
const IDLE_LOOKS = 3;

describe('A flood of webhook deliveries', () => {
  test('is sent at the pace of the plan, and the rest waits as one row for a push and webhook', async (context) => {
    const receivers = await webhookReceivers(context);
    const { FREE } = DEFAULT_PLANS;
    const plans = path.join(await tempDir(context), 'plans.json');
    await writeFile(plans, JSON.stringify({ FREE: { ...FREE, deliveries_per_hour: PER_HOUR } }));
    const stage = await setStage(context, { env: { ...receivers.env, STRATA_PLANS: plans } });
    const { strata, attacker, shared } = stage;
    const receiver = await receivers.start();
    const ids: string[] = [];
    for (let hook = 0; hook < WEBHOOKS_MAX; hook += 1) {
      ids.push((await createWebhook(strata, attacker, receiver.url, ['push', 'create', 'delete'])).id);
    }
    const remote = await createRepository(strata, attacker, 'flood');
    const work = await newWorkTree(context);
    const tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const refs = Array.from({ length: REFS }, (_, at) => `refs/heads/b${at}`);
    await createRefs(work, refs, tip);

    const pool = createPool({ connectionString: shared.env['STRATA_DATABASE_URL'] ?? '', log: keepLog() });
    cleanUp(context, () => pool.end());
    const countRequested = async (): Promise<number> => {
      const text = `SELECT count(*)::int AS count FROM events WHERE type = 'WebhookDeliveryRequested'`;
      return (await pool.query<{ count: number }>(text)).rows[0]?.count ?? 0;
    };
    const figures = await underAttack(
      context,
      stage,
      `${REFS} refs to ${WEBHOOKS_MAX} webhooks`,
      async () => {
        await git(work, ['push', '--quiet', remote, 'refs/heads/b*:refs/heads/b*']);
        // Until nothing more is requested, and nothing more is sent.
        for (let [before, same] = [0, 0]; same < IDLE_LOOKS; ) {
          await sleep(2_000);
          const now = (await countRequested()) + receiver.received.length;
          same = now === before ? same + 1 : 0;
          before = now;
        }
      },
      { eventsMax: 2 * PER_HOUR * 5 },
    );
    const requested = await countRequested();
    const sent = receiver.received.length;
    noteFigure(context, `${requested} requested, ${sent} sent, ${figures.events} events; before: 40,000 and 194,000`);
    // The hour may have turned since.
    assert.ok(sent >= PER_HOUR && sent <= 2 * PER_HOUR, `${sent} sent`);
    assert.ok(requested <= 2 * PER_HOUR, 'the others wait as rows');
    const text = 'SELECT count(*)::int AS count, sum(waiting)::int AS waiting FROM webhook_waiting_deliveries';
    const [waiting] = (await pool.query<{ count: number; waiting: number }>(text)).rows;
    assert.deepEqual(waiting, { count: WEBHOOKS_MAX, waiting: DELIVERIES - requested });
    const [newest] = await listDeliveries(strata, attacker, ids[0] ?? '', '?limit=1');
    assert.equal(newest?.['status'], 'PENDING');
    assert.match(String(newest?.['error']), /deliveries_per_hour of its plan\) are used up: this one waits until 20/);
  });
});
