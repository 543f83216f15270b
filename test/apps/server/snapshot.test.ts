/** One answer for all who ask within a short time. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createSnapshot } from '../../../apps/server/snapshot.ts';

const SPAN_MS = 1_000;

function counted() {
  let nowMs = 0;
  let made = 0;
  const endings: (() => void)[] = [];
  const make = () => {
    made += 1;
    const mine = made;
    return new Promise<number>((resolve) => endings.push(() => resolve(mine)));
  };
  const ask = createSnapshot(make, { ageMsMax: SPAN_MS, monotonicMs: () => nowMs });
  return {
    ask,
    made: () => made,
    pass: (ms: number) => void (nowMs += ms),
    end: async () => {
      endings.shift()?.();
      await new Promise(setImmediate);
    },
  };
}

test('All who ask while an answer is made share it, however long that takes', async () => {
  const { ask, made, pass, end } = counted();
  const first = ask();
  pass(60_000);
  const second = ask();
  await end();
  assert.deepEqual([await first, await second, made()], [1, 1, 1]);
});

test('An answer is given again until it is as old as may be, and then made again', async () => {
  const { ask, made, pass, end } = counted();
  const first = ask();
  await end();
  await first;
  pass(SPAN_MS - 1);
  assert.equal(await ask(), 1);
  pass(1);
  const second = ask();
  await end();
  assert.deepEqual([await second, made()], [2, 2]);
});

test('A failure is given again as an answer is, and ends nothing', async () => {
  let nowMs = 0;
  let made = 0;
  const fail = async (): Promise<never> => {
    made += 1;
    throw new Error(`failure ${made}`);
  };
  const ask = createSnapshot(fail, { ageMsMax: SPAN_MS, monotonicMs: () => nowMs });
  await assert.rejects(ask(), /failure 1/);
  await assert.rejects(ask(), /failure 1/);
  nowMs += SPAN_MS;
  await assert.rejects(ask(), /failure 2/);
});
