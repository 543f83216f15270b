/** Events that a model cannot apply: parked, retried, or the reason to halt. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type LogPosition, type RecordedEvent, streamName } from '../../../core/kernel/envelope.ts';
import { StreamFault } from '../../../projections/runner/faults.ts';
import { PARKED_STREAMS_MAX } from '../../../projections/runner/writer.ts';
import { appendSome, counting, counts, setUp } from '../../support/counting-model.ts';
import { newUuid, startRunner, until, WAIT_MS, waitingStreams } from '../../support/read-models.ts';

describe('an event that cannot be applied', () => {
  const poisoned = streamName('account', newUuid());

  test('is parked with the later events of its stream, and replayed on request', async (context) => {
    const { pool, store, append } = await setUp(context);
    let mended = false;
    const poison = (event: RecordedEvent): void => {
      if (event.stream === poisoned && event.revision === 1 && !mended) throw new Error('cannot be applied');
    };
    const models = [counting({ poison })];
    const { runner, log } = await startRunner(context, { events: store, database: pool, models });
    const add = (): Promise<LogPosition> => append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await add();
    await add();
    const others = await appendSome(append, 2, 2);
    await add();
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...others, [poisoned]: 1 });
    assert.deepEqual(await runner.parked(), [
      {
        projection: 'counting',
        stream: poisoned,
        revision: 1,
        events: 2,
        attempts: 1,
        error: 'Error: cannot be applied',
      },
    ]);
    assert.ok(log.lines.some(({ level, message }) => level === 'error' && message.includes('parked')));
    // A request before the fault is fixed leaves it parked; a later replay loses no event and keeps the order.
    assert.equal(await runner.replay(poisoned), 1);
    await until(async () => (await runner.parked())[0]?.attempts === 2);
    await add();
    await runner.waitFor(append.last, WAIT_MS);
    assert.equal((await runner.parked())[0]?.events, 3);
    mended = true;
    assert.equal(await runner.replay(null), 1);
    await until(async () => (await runner.parked()).length === 0);
    await add();
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...others, [poisoned]: 5 });
  });

  test('stays parked after a restart', async (context) => {
    const { pool, store, append } = await setUp(context);
    const poison = (event: RecordedEvent): void => {
      if (event.stream === poisoned && event.revision === 0) throw new Error('cannot be applied');
    };
    const first = await startRunner(context, { events: store, database: pool, models: [counting({ poison })] });
    await append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await first.runner.waitFor(append.last, WAIT_MS);
    await first.runner.close();
    const second = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.equal((await second.runner.parked())[0]?.events, 2);
    assert.deepEqual(await counts(pool), {});
  });

  test('halts a model with `onPoison: halt`, whose checkpoint stays before it', async (context) => {
    const { pool, store, append } = await setUp(context);
    let mended = false;
    const poison = (event: RecordedEvent): void => {
      if (event.stream === poisoned && !mended) throw new Error('cannot be applied');
    };
    const models = [counting({ poison, onPoison: 'halt' })];
    const { runner, log } = await startRunner(context, { events: store, database: pool, models });
    const others = await appendSome(append, 1, 1);
    await append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await until(() => log.lines.some(({ message }) => message.includes('halted')));
    assert.deepEqual(await counts(pool), others);
    mended = true;
    await runner.replay(null);
    await until(async () => Object.keys(await counts(pool)).length === 2);
    assert.deepEqual(await counts(pool), { ...others, [poisoned]: 1 });
  });

  for (const [beyondBounds, what] of [
    [false, 'halts a model that fails on more than a hundred streams'],
    [true, 'halts no model for streams that exceed a limit of their own, however many'],
  ] as const) {
    test(what, async (context) => {
      const { pool, store, append } = await setUp(context);
      const bad = Array.from({ length: PARKED_STREAMS_MAX + 1 }, () => streamName('account', newUuid()));
      const poison = ({ stream }: RecordedEvent): void => {
        if (bad.includes(stream)) throw new StreamFault(stream, 'on-request', 'too much', { beyondBounds });
      };
      for (const stream of bad) await append.append(stream, newUuid(), 'PlanChanged', { plan: 'PRO' });
      const others = await appendSome(append, 2, 2);
      const options = { events: store, database: pool, models: [counting({ poison })] };
      const { runner, log } = await startRunner(context, options);
      const halted = () => log.lines.some(({ message }) => message.includes('halted'));
      if (beyondBounds) {
        await runner.waitFor(append.last, WAIT_MS);
        assert.deepEqual(await counts(pool), others);
        assert.equal(await waitingStreams(runner), bad.length);
        for (const { position } of await runner.figures()) assert.equal(position, append.last);
      } else {
        await until(halted);
        assert.deepEqual(await counts(pool), {});
      }
      assert.equal(halted(), !beyondBounds);
    });
  }
});
