/** A model applies the events of one append in one transaction, or none of them. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type RecordedEvent, type StreamName, streamName } from '../../../core/kernel/envelope.ts';
import type { Projection } from '../../../projections/runner/projection.ts';
import { counting, counts, setUp } from '../../support/counting-model.ts';
import { type Appender, newUuid, startRunner, until, WAIT_MS } from '../../support/read-models.ts';

const PLAN_CHANGED = { type: 'PlanChanged', data: { plan: 'PRO' } };

async function appendTogether(append: Appender, stream: StreamName, events: number): Promise<void> {
  await append.together(
    stream,
    newUuid(),
    Array.from({ length: events }, () => PLAN_CHANGED),
  );
}

/** Returns the model, and the events of each of its transactions. */
function watched(model: Projection): { readonly model: Projection; readonly batches: (readonly RecordedEvent[])[] } {
  const batches: (readonly RecordedEvent[])[] = [];
  const open: Projection['open'] = (table) => {
    const applier = model.open(table);
    return {
      prepare: (events, ...rest) => {
        batches.push(events);
        return applier.prepare(events, ...rest);
      },
    };
  };
  return { model: { ...model, open }, batches };
}

function assertWhole(batches: readonly (readonly RecordedEvent[])[]): void {
  for (const batch of batches) {
    for (const [index, { appendIndex, appendCount }] of batch.entries()) {
      if (index === 0) assert.equal(appendIndex, 0);
      if (index === batch.length - 1) assert.equal(appendIndex, appendCount - 1);
    }
  }
}

describe('an append', () => {
  test('is applied in one transaction, however heavy it is', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { model, batches } = watched(counting({ weight: () => 9_000 }));
    const expected: Record<string, number> = {};
    for (let n = 0; n < 4; n += 1) {
      const stream = streamName('account', newUuid());
      await appendTogether(append, stream, 1 + n);
      expected[stream] = 1 + n;
    }
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    assertWhole(batches);
    assert.ok(batches.length >= 3, 'all fitted into one transaction');
  });

  test('is parked whole if one of its events cannot be applied', async (context) => {
    const { pool, store, append } = await setUp(context);
    const stream = streamName('account', newUuid());
    let mended = false;
    const poison = (event: RecordedEvent): void => {
      if (event.stream === stream && event.revision === 2 && !mended) throw new Error('cannot be applied');
    };
    // The fault names no stream, so the writer applies each append separately.
    const models = [counting({ poison })];
    const { runner } = await startRunner(context, { events: store, database: pool, models });
    await appendTogether(append, stream, 1);
    await appendTogether(append, stream, 3);
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { [stream]: 1 });
    const [parked] = await runner.parked();
    assert.deepEqual([parked?.revision, parked?.events], [1, 3]);
    mended = true;
    await runner.replay(null);
    await until(async () => (await runner.parked()).length === 0);
    assert.deepEqual(await counts(pool), { [stream]: 4 });
  });

  test('is replayed whole, even if more events are parked than one transaction takes', async (context) => {
    const { pool, store, append } = await setUp(context);
    const stream = streamName('account', newUuid());
    let mended = false;
    const poison = (): void => {
      if (!mended) throw new Error('cannot be applied');
    };
    const { model, batches } = watched(counting({ poison }));
    const { runner } = await startRunner(context, { events: store, database: pool, models: [model] });
    for (let n = 0; n < 240; n += 1) await appendTogether(append, stream, 3);
    await runner.waitFor(append.last, WAIT_MS);
    assert.equal((await runner.parked())[0]?.events, 720);
    batches.length = 0;
    mended = true;
    await runner.replay(null);
    await until(async () => (await runner.parked()).length === 0);
    assert.deepEqual(await counts(pool), { [stream]: 720 });
    assertWhole(batches);
    assert.deepEqual(
      batches.map(({ length }) => length),
      [501, 219],
    );
  });
});
