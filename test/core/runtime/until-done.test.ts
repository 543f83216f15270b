/** How work is repeated. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { untilDone } from '../../../core/runtime/until-done.ts';

describe('work that is repeated until it is done', () => {
  test('reports each failure, pauses twice as long after each, and gives the value of the try that succeeds', async () => {
    const pauses: number[] = [];
    const faults: unknown[] = [];
    const repeating = {
      pause: async (ms: number) => void pauses.push(ms),
      onFault: (error: unknown) => void faults.push(error),
    };
    let tries = 0;
    const value = await untilDone(repeating, new AbortController().signal, async () => {
      tries += 1;
      if (tries <= 8) throw new Error('down');
      return 'done';
    });
    assert.equal(value, 'done');
    assert.equal(faults.length, 8);
    assert.deepEqual(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  test('ends without a value when the signal is aborted, and does not begin after that', async () => {
    const ending = new AbortController();
    let tries = 0;
    const pause = async () => {
      assert.equal(tries, 1);
      ending.abort();
    };
    const repeating = { pause, onFault: () => undefined };
    const work = async () => {
      tries += 1;
      throw new Error('down');
    };
    assert.equal(await untilDone(repeating, ending.signal, work), null);
    assert.equal(await untilDone(repeating, ending.signal, work), null);
    assert.equal(tries, 1);
  });
});
