/** Waiting for an abort signal, and that nothing of the waiting stays on a signal that lives long. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'vitest';
import { aborted, untilAborted } from '../../../core/kernel/aborted.ts';

const never = new Promise<string>(() => undefined);

describe('Waiting until a signal is aborted', () => {
  test('ends when the signal is aborted, also if it was before', async () => {
    const ending = new AbortController();
    const waits = [aborted(ending.signal), untilAborted(ending.signal, never)];
    ending.abort();
    assert.deepEqual(await Promise.all(waits), [undefined, null]);
    assert.equal(await aborted(ending.signal), undefined);
    assert.equal(await untilAborted(ending.signal, never), null);
  });

  test("ends with the work's value or error, whichever comes before the abort", async () => {
    const { signal } = new AbortController();
    assert.equal(await untilAborted(signal, Promise.resolve('done')), 'done');
    await assert.rejects(untilAborted(signal, Promise.reject(new Error('failed'))), /failed/);
  });

  test('leaves no listener on the signal, however often something waited', async () => {
    const ending = new AbortController();
    for (let turn = 0; turn < 1_000; turn += 1) {
      await untilAborted(ending.signal, Promise.resolve());
      await assert.rejects(untilAborted(ending.signal, Promise.reject(new Error('failed'))));
    }
    assert.equal(getEventListeners(ending.signal, 'abort').length, 0);
    ending.abort();
    await untilAborted(ending.signal, never);
    assert.equal(getEventListeners(ending.signal, 'abort').length, 0);
  });
});
