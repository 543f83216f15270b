/** Generations beside the live one: rebuilds, verification, new versions. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createGeneration, switchLive } from '../../../projections/runner/generations.ts';
import { tablesExist } from '../../../projections/runner/tables.ts';
import { appendSome, counting, counts, liveTable, setUp } from '../../support/counting-model.ts';
import { isReadModelError } from '../../support/pushed-repository.ts';
import { newRunner, startRunner, until, WAIT_MS } from '../../support/read-models.ts';

describe('beside the live generation,', () => {
  test('a rebuild replaces the live generation while events arrive, and drops the old tables', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    let expected = await appendSome(append, 5, 20);
    await runner.waitFor(append.last, WAIT_MS);
    const before = await liveTable(pool, 'counts');
    let flowing = true;
    const flow = (async () => {
      while (flowing) {
        expected = { ...expected, ...(await appendSome(append, 1, 1)) };
        await sleep(1);
      }
    })();
    await runner.rebuild(null);
    await sleep(20);
    flowing = false;
    await flow;
    await runner.waitFor(append.last, WAIT_MS);
    assert.notEqual(await liveTable(pool, 'counts'), before);
    await until(async () => Object.keys(await counts(pool)).length === Object.keys(expected).length);
    assert.deepEqual(await counts(pool), expected);
    const { rows } = await pool.query(`SELECT tablename FROM pg_tables WHERE tablename LIKE 'counts%'`);
    assert.equal(rows.length, 1);
  });

  test('a generation catches up with the live one, which is blocked in between, before it replaces it', async (context) => {
    const { pool, store, append } = await setUp(context);
    const model = counting();
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    const before = await appendSome(append, 2, 2);
    await runner.waitFor(append.last, WAIT_MS);
    const client = await pool.connect();
    const { generation, replaces } = await createGeneration(client, model);
    const live = { generation: replaces, tables: [] };
    const { last } = append;
    await switchLive(client, generation, live, async (position) => {
      assert.equal(position, last);
      await appendSome(append, 1, 1);
      await assert.rejects(runner.waitFor(append.last, 100), isReadModelError('read-model-behind'));
      assert.deepEqual(await counts(pool), before);
    });
    client.release();
    // The runner continues with the new generation, from its checkpoint.
    await runner.waitFor(append.last, WAIT_MS);
    assert.equal(Object.keys(await counts(pool)).length, 3);
  });

  test('verification finds every kind of manipulated row, and a rebuild repairs them', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const expected = await appendSome(append, 4, 2);
    await runner.waitFor(append.last, WAIT_MS);
    const [sound] = await runner.verify(null);
    assert.deepEqual([sound?.rows, sound?.differences], [4, 0]);
    const [changed = '', removed = ''] = Object.keys(expected);
    const table = await liveTable(pool, 'counts');
    await pool.query(`UPDATE ${table} SET events = events + 1 WHERE stream = $1`, [changed]);
    await pool.query(`DELETE FROM ${table} WHERE stream = $1`, [removed]);
    await pool.query(`INSERT INTO ${table} VALUES ('account-invented', 1)`);
    const [found] = await runner.verify('counting');
    assert.equal(found?.differences, 3);
    const kinds = new Map(found?.examples.map(({ key, kind }) => [key, kind]));
    assert.equal(kinds.get(`(${changed})`), 'different');
    assert.equal(kinds.get(`(${removed})`), 'missing');
    assert.equal(kinds.get('(account-invented)'), 'extra');
    await runner.rebuild('counting');
    const [mended] = await runner.verify('counting');
    assert.equal(mended?.differences, 0);
    const { rows } = await pool.query(`SELECT count(*)::int AS n FROM pg_tables WHERE tablename LIKE 'counts%'`);
    assert.deepEqual(rows, [{ n: 1 }]);
  });

  test('rebuilding and verifying work without a started runner, as on the command line', async (context) => {
    const { pool, store, append } = await setUp(context);
    const expected = await appendSome(append, 2, 2);
    const { runner } = newRunner(context, { events: store, database: pool, models: [counting()] });
    await runner.rebuild(null);
    assert.deepEqual(await counts(pool), expected);
    const [result] = await runner.verify(null);
    assert.equal(result?.differences, 0);
  });

  test('a new version of a model is built from the log, and the old version is dropped after its runners ended', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const expected = await appendSome(append, 2, 2);
    await first.runner.waitFor(append.last, WAIT_MS);
    const second = await startRunner(context, { events: store, database: pool, models: [counting({ version: 2 })] });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    // A runner of the old version still runs, so its tables remain.
    const tables = async (): Promise<number> =>
      (await pool.query(`SELECT 1 FROM pg_tables WHERE tablename LIKE 'counts%'`)).rowCount ?? 0;
    assert.equal(await tables(), 2);
    await first.runner.close();
    await second.runner.close();
    const third = await startRunner(context, { events: store, database: pool, models: [counting({ version: 2 })] });
    await third.runner.waitFor(append.last, WAIT_MS);
    await until(async () => (await tables()) === 1);
  });

  test('an old version of a model without a writer stays while a process reads it', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const expected = await appendSome(append, 2, 2);
    await first.runner.waitFor(append.last, WAIT_MS);
    const old = await liveTable(pool, 'counts');
    await first.runner.close();
    const asked: [string, number][] = [];
    let isOldRead = true;
    const isRead = async (model: string, version: number) => {
      asked.push([model, version]);
      return isOldRead;
    };
    const models = [counting({ version: 2 })];
    const second = await startRunner(context, { events: store, database: pool, models, isRead });
    await second.runner.waitFor(append.last, WAIT_MS);
    await until(() => asked.length > 2);
    assert.deepEqual(asked[0], ['counting', 1]);
    const { rows } = await pool.query(`SELECT count(*)::int AS n FROM ${old}`);
    assert.deepEqual(rows, [{ n: Object.keys(expected).length }]);
    isOldRead = false;
    await until(async () => !(await tablesExist(pool, [old])));
  });
});
