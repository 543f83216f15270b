/** The runner follows the log: order, filters, read-your-writes, races. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type LogPosition } from '../../../core/kernel/envelope.ts';
import type { EventStore, SubscribeOptions } from '../../../core/ports/event-store.ts';
import { ReadModelError } from '../../../core/ports/read-models.ts';
import { appendSome, counting, counts, replacing, setUp, withoutLocks } from '../../support/counting-model.ts';
import { newRunner, newUuid, startRunner, until, WAIT_MS } from '../../support/read-models.ts';

describe('a runner that follows the log', () => {
  test('applies each event once, and advances past events that the model does not want', async (context) => {
    const { pool, store, append } = await setUp(context);
    const expected = await appendSome(append, 3, 4);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    await append.token(newUuid(), 'not for this model');
    await runner.waitFor(append.last, WAIT_MS);
    const { rows } = await pool.query('SELECT position FROM read_models.checkpoints');
    assert.deepEqual(rows, [{ position: String(append.last) }]);
  });

  test('moves the checkpoints of idle models with one statement, and one by one if that fails', async (context) => {
    const { pool, store, append } = await setUp(context);
    const idle = ['first', 'second', 'third'].map((name) => counting({ name, tables: [] }));
    let [together, alone, isRefused] = [0, 0, false];
    const watched = replacing(pool, (text) => {
      if (!text.startsWith('UPDATE read_models.checkpoints')) return null;
      if (!text.includes('json_to_recordset')) alone += 1;
      else if (isRefused) throw new Error('Connection terminated');
      else together += 1;
      return null;
    });
    const { runner } = await startRunner(context, { events: store, database: watched, models: idle });
    const appendOne = async (): Promise<void> => {
      await append.token(newUuid(), 'for none of them');
      await runner.waitFor(append.last, WAIT_MS);
      const { rows } = await pool.query('SELECT position FROM read_models.checkpoints');
      assert.deepEqual(
        rows,
        idle.map(() => ({ position: String(append.last) })),
      );
    };
    await until(async () => {
      await appendOne();
      return together > 0;
    });
    isRefused = true;
    const before = alone;
    await until(async () => {
      await appendOne();
      return alone >= before + idle.length;
    });
  });

  test('wakes a waiting reader with its own commit, and rejects after the time-out if no event arrives', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await runner.waitFor(append.last, WAIT_MS);
    const next = (append.last + 1n) as LogPosition;
    const waiting = runner.waitFor(next, WAIT_MS);
    await appendSome(append, 1, 1);
    await waiting;
    assert.equal(Object.keys(await counts(pool)).length, 1);
    const beyond = (next + 1n) as LogPosition;
    await assert.rejects(runner.waitFor(beyond, 10), (error) => {
      return error instanceof ReadModelError && error.code === 'read-model-behind';
    });
  });

  test('lingers over new events, and not while a reader waits for them', async (context) => {
    const { pool, store, append } = await setUp(context);
    const pulls: LogPosition[] = [];
    let held = Promise.withResolvers<void>();
    const lingering: EventStore = {
      ...store,
      subscribe: (options) => {
        assert.equal(options.lingers, true);
        const onEvents: SubscribeOptions['onEvents'] = async (...batch) => {
          await held.promise;
          await options.onEvents(...batch);
        };
        const subscription = store.subscribe({ ...options, onEvents });
        const pull = (position: LogPosition): void => {
          pulls.push(position);
          held.resolve();
        };
        return { ...subscription, pull };
      },
    };
    const { runner } = await startRunner(context, { events: lingering, database: pool, models: [counting()] });
    await until(() => runner.knownPosition('counting') === 0n);
    const expected = await appendSome(append, 2, 2);
    const waiting = runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(pulls, [append.last]);
    await waiting;
    assert.deepEqual(await counts(pool), expected);
    // Who needs no more than what is applied disturbs nobody.
    held = Promise.withResolvers<void>();
    const applied = append.last;
    await appendSome(append, 1, 1);
    await runner.waitFor(applied, WAIT_MS);
    assert.deepEqual(pulls, [applied]);
    held.resolve();
  });

  test('learns positions from the database if it does not lead', async (context) => {
    const { pool, store, append } = await setUp(context);
    const models = [counting()];
    const leader = await startRunner(context, { events: store, database: pool, models });
    await leader.runner.waitFor(append.last, WAIT_MS);
    const reader = newRunner(context, { events: store, database: pool, models });
    const expected = await appendSome(append, 2, 2);
    await reader.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });

  test('applies every event exactly once although another runner races for each batch', async (context) => {
    const { pool, store, append } = await setUp(context);
    // Without the lock both lead: only the checkpoint keeps them from applying an event twice.
    const unlocked = withoutLocks(pool);
    const models = [counting()];
    const one = await startRunner(context, { events: store, database: unlocked, models });
    await one.runner.waitFor(append.last, WAIT_MS);
    const two = await startRunner(context, { events: store, database: unlocked, models });
    const lostRaces = (): number =>
      [...one.log.lines, ...two.log.lines].filter(({ message }) => message.includes('changed a read model')).length;
    let expected = {};
    await until(async () => {
      expected = { ...expected, ...(await appendSome(append, 5, 5)) };
      return lostRaces() >= 3;
    });
    await one.runner.waitFor(append.last, WAIT_MS);
    await two.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });
});
