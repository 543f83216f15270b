/**
 * What the models of activity and of accounts' logs keep in memory between their transactions: it saves a query a push,
 * and is never older than their rows. A rebuild, which begins with nothing, must be equal row by row.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { type AccountId, type RepositoryId, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { StoredRefUpdate } from '../../core/repository/events.ts';
import { createAccountLogProjection } from '../../projections/account-log/apply.ts';
import { activityProjection } from '../../projections/activity/apply.ts';
import type { ProjectionRunner } from '../../projections/runner/runner.ts';
import { killLeader, replacing, setUp, withoutLocks } from '../support/counting-model.ts';
import { type Appender, newRunner, startRunner, until, WAIT_MS } from '../support/read-models.ts';

const models = () => [activityProjection, createAccountLogProjection(digest)];
const READS = [/SELECT number \+ count .* AS next/s, /FROM \S*account_log_heads\S* WHERE account_id = ANY/];

/** An account with a repository, and pushes of two refs each to it. */
async function pushing(append: Appender) {
  const account: AccountId = await append.account('ada');
  const repository: RepositoryId = await append.repository(account, 'project');
  const after = digest.sha256('a commit').slice(0, 40);
  const update = { before: ZERO_OBJECT_ID, after, type: 'commit', peeled: null, kind: 'create' };
  const updates = ['one', 'two'].map((name) => ({ ref: `refs/heads/${name}`, ...update }) as StoredRefUpdate);
  let pushes = 0;
  const push = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n += 1) await append.push(account, repository, { updates });
    pushes += times;
  };
  return { push, pushes: () => pushes };
}

async function assertLikeRebuilt(runner: ProjectionRunner, pushes: number): Promise<void> {
  const verified = await runner.verify(null);
  assert.deepEqual(
    verified.map(({ projection, differences }) => [projection, differences]),
    [
      ['activity', 0],
      ['account_log', 0],
    ],
  );
  // A row for each push, and one for the changes of its two refs.
  assert.equal(verified[0]?.rows, 2 * pushes);
  assert.deepEqual(await runner.parked(), []);
}

describe('The number of the next change and the head of a log', () => {
  test('are read once, however many transactions follow', async (context) => {
    const { pool, store, append } = await setUp(context);
    const reads = READS.map(() => 0);
    const watched = replacing(pool, (text) => {
      READS.forEach((read, index) => {
        if (read.test(text)) reads[index] = (reads[index] ?? 0) + 1;
      });
      return null;
    });
    const { runner } = await startRunner(context, { events: store, database: watched, models: models() });
    const { push, pushes } = await pushing(append);
    for (let n = 0; n < 10; n += 1) {
      await push(1);
      await runner.waitFor(append.last, WAIT_MS);
    }
    assert.deepEqual(reads, [1, 1]);
    await assertLikeRebuilt(runner, pushes());
  });

  test('are read again by a writer that lost a race to another one', async (context) => {
    const { pool, store, append } = await setUp(context);
    // Without the lock both lead: only the checkpoint keeps them from numbering with what they remember.
    const database = withoutLocks(pool);
    const one = await startRunner(context, { events: store, database, models: models() });
    await one.runner.waitFor(append.last, WAIT_MS);
    const two = await startRunner(context, { events: store, database, models: models() });
    const lostRaces = (): number[] =>
      [one, two].map(({ log }) => log.lines.filter(({ message }) => message.includes('changed a read model')).length);
    const { push, pushes } = await pushing(append);
    await until(async () => {
      await push(5);
      await Promise.all([one, two].map(({ runner }) => runner.waitFor(append.last, WAIT_MS)));
      return lostRaces().every((lost) => lost >= 3);
    });
    await assertLikeRebuilt(one.runner, pushes());
  });

  for (const moment of ['before', 'after'] as const) {
    test(`are read again when the connection is lost ${moment} a commit`, async (context) => {
      const { pool, store, append } = await setUp(context);
      let crashes = 0;
      let armed = false;
      const crashing = replacing(pool, async (text, client, statement) => {
        if (!armed || !text.startsWith('WITH done AS (UPDATE read_models.checkpoints') || crashes >= 6) return null;
        crashes += 1;
        if (moment === 'after') await client.query(statement);
        return client.query('SELECT pg_terminate_backend(pg_backend_pid())');
      });
      const { runner } = await startRunner(context, { events: store, database: crashing, models: models() });
      const { push, pushes } = await pushing(append);
      await push(3);
      await runner.waitFor(append.last, WAIT_MS);
      armed = true;
      for (let n = 0; n < 4; n += 1) {
        await push(3);
        await runner.waitFor(append.last, WAIT_MS);
      }
      assert.equal(crashes, 6);
      await assertLikeRebuilt(runner, pushes());
    });
  }

  test('are read again when another process has led in between', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: models() });
    const second = newRunner(context, { events: store, database: pool, models: models() });
    await second.runner.start();
    const { push, pushes } = await pushing(append);
    for (let n = 0; n < 6; n += 1) {
      await push(3);
      await first.runner.waitFor(append.last, WAIT_MS);
      await killLeader(pool);
    }
    await push(3);
    await first.runner.waitFor(append.last, WAIT_MS);
    await assertLikeRebuilt(first.runner, pushes());
  });
});
