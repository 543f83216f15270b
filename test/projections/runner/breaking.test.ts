/** The runner when something it depends on breaks: connections, processes, tables, the log. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { pause } from '../../../adapters/node/pause.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { appendSome, counting, counts, killLeader, liveTable, replacing, setUp } from '../../support/counting-model.ts';
import { startRunner, until, WAIT_MS } from '../../support/read-models.ts';

const LONGER_THAN_SILENCE_MS = 4_000;
/** The pause of a test's runner between two checks for parked streams. */
const INTERVAL_MS = 20;

describe('when something breaks,', () => {
  test('another runner takes over when the connection of the active one dies', async (context) => {
    const { pool, store, append } = await setUp(context);
    const models = [counting()];
    let partitioned = false;
    const mortal = replacing(pool, (text) =>
      partitioned && text.includes('pg_try_advisory_lock') ? { rows: [{ taken: false }] } : null,
    );
    const one = await startRunner(context, { events: store, database: mortal, models });
    await one.runner.waitFor(append.last, WAIT_MS);
    const two = await startRunner(context, { events: store, database: pool, models });
    const before = await appendSome(append, 3, 3);
    await two.runner.waitFor(append.last, WAIT_MS);
    assert.equal(two.applied.length, 0, 'the second runner led while the first was alive');
    partitioned = true;
    assert.equal(await killLeader(pool), 1);
    const after = await appendSome(append, 3, 3);
    await Promise.all([one.runner.waitFor(append.last, WAIT_MS), two.runner.waitFor(append.last, WAIT_MS)]);
    assert.ok(two.applied.length > 0);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  test('another runner takes over from one that froze, which works again after it thaws', async (context) => {
    const { pool, store, append } = await setUp(context);
    const models = [counting()];
    let thawed: Promise<unknown> = Promise.resolve();
    const freezing = replacing(pool, async () => {
      await thawed;
      return null;
    });
    const one = await startRunner(context, { events: store, database: freezing, models });
    await one.runner.waitFor(append.last, WAIT_MS);
    const two = await startRunner(context, { events: store, database: pool, models });
    // Its connection stays open, but no statement completes, as for a stopped process.
    const thaw = Promise.withResolvers<undefined>();
    cleanUp(context, () => thaw.resolve(undefined));
    thawed = thaw.promise;
    const before = await appendSome(append, 3, 3);
    await two.runner.waitFor(append.last, WAIT_MS);
    assert.ok(two.applied.length > 0);
    thaw.resolve(undefined);
    const after = await appendSome(append, 3, 3);
    await Promise.all([one.runner.waitFor(append.last, WAIT_MS), two.runner.waitFor(append.last, WAIT_MS)]);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  test('a runner keeps its lead during a batch that takes longer than a runner may be silent', async (context) => {
    const { pool, store, append } = await setUp(context);
    const model = counting();
    const slow: typeof model = {
      ...model,
      open: (table) => {
        const applier = model.open(table);
        const prepare: typeof applier.prepare = async (...batch) => {
          await sleep(LONGER_THAN_SILENCE_MS);
          return applier.prepare(...batch);
        };
        return { ...applier, prepare };
      },
    };
    const expected = await appendSome(append, 1, 1);
    const { runner, log } = await startRunner(context, { events: store, database: pool, models: [slow] });
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    assert.deepEqual(
      log.lines.filter(({ level }) => level !== 'info'),
      [],
    );
  });

  test('a runner whose connection dies starts again without help', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const before = await appendSome(append, 2, 5);
    await runner.waitFor(append.last, WAIT_MS);
    await killLeader(pool);
    const after = await appendSome(append, 2, 5);
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  test('a runner that loses its connection repeatedly restarts after the same pause each time', async (context) => {
    const { pool, store, append } = await setUp(context);
    const pauses: number[] = [];
    const noted: typeof pause = (ms, signal) => {
      if (ms > INTERVAL_MS) pauses.push(ms);
      return pause(ms, signal);
    };
    const models = [counting()];
    const { runner } = await startRunner(context, { events: store, database: pool, models, pause: noted });
    for (let losses = 1; losses <= 3; losses += 1) {
      await appendSome(append, 2, 5);
      await runner.waitFor(append.last, WAIT_MS);
      await killLeader(pool);
      await until(() => pauses.length === losses);
    }
    assert.deepEqual(pauses, [50, 50, 50]);
  });

  for (const moment of ['between apply and commit', 'after the commit, before its answer'] as const) {
    test(`a crash ${moment} loses no event and applies none twice`, async (context) => {
      const { pool, store, append } = await setUp(context);
      let crashes = 0;
      const crashing = replacing(pool, async (text, client) => {
        if (text !== 'COMMIT' || crashes >= 3) return null;
        crashes += 1;
        if (moment !== 'between apply and commit') await client.query('COMMIT');
        return client.query('SELECT pg_terminate_backend(pg_backend_pid())');
      });
      const { runner } = await startRunner(context, { events: store, database: crashing, models: [counting()] });
      let expected = {};
      for (let round = 0; round < 4; round += 1) {
        expected = { ...expected, ...(await appendSome(append, 5, 5)) };
        await runner.waitFor(append.last, WAIT_MS);
      }
      assert.equal(crashes, 3);
      assert.deepEqual(await counts(pool), expected);
    });
  }

  test('dropped tables are built again, by a running process and by one that starts', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const before = await appendSome(append, 3, 3);
    await first.runner.waitFor(append.last, WAIT_MS);
    await pool.query(`DROP TABLE ${await liveTable(pool, 'counts')}`);
    const after = await appendSome(append, 1, 1);
    await until(async () => {
      const found = await counts(pool).catch(() => ({}));
      return Object.keys(found).length === 4;
    });
    assert.deepEqual(await counts(pool), { ...before, ...after });
    await first.runner.close();
    await pool.query('DROP SCHEMA read_models CASCADE');
    const second = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  test('a log that lacks the event a model was built from halts the model and logs an error', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await appendSome(append, 1, 2);
    await first.runner.waitFor(append.last, WAIT_MS);
    await first.runner.close();
    await pool.query(`UPDATE read_models.checkpoints SET event_id = gen_random_uuid()`);
    const second = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await until(() => second.log.lines.some(({ message }) => message.includes('halted')));
    const { rows } = await pool.query('SELECT halted FROM read_models.projections');
    assert.match(rows[0]?.halted, /was built from event/);
    // A rebuild replaces the wrong generation, and the runner continues with the new one.
    await second.runner.rebuild('counting');
    const after = await appendSome(append, 1, 1);
    await until(async () => Object.keys(await counts(pool)).length === 2);
    assert.deepEqual(
      Object.values(await counts(pool)).sort((a, b) => a - b),
      [1, 2],
    );
    assert.ok(Object.keys(after).length === 1);
  });
});

describe('closing a runner', () => {
  test('gives up a batch that takes long, and the next runner applies it', async (context) => {
    const { pool, store, append } = await setUp(context);
    let reading = false;
    const stuck = counting();
    const models = [
      {
        ...stuck,
        open: () => ({
          prepare: () => {
            reading = true;
            return new Promise<never>(() => undefined);
          },
        }),
      },
    ];
    const first = await startRunner(context, { events: store, database: pool, models });
    const expected = await appendSome(append, 1, 1);
    await until(() => reading);
    await first.runner.close();
    const second = await startRunner(context, { events: store, database: pool, models: [stuck] });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });
});
