/** Pauses on the machine's timer. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'vitest';
import { pause } from '../../../adapters/node/pause.ts';

const LONG_MS = 60_000;

describe('A pause', () => {
  test('lasts for its milliseconds', async () => {
    const startedMs = performance.now();
    await pause(30, new AbortController().signal);
    // The machine's timers count whole milliseconds.
    assert.ok(performance.now() - startedMs >= 29);
  });

  test('ends without an error when the signal aborts, and immediately if it already has', async () => {
    const ending = new AbortController();
    const startedMs = performance.now();
    const paused = pause(LONG_MS, ending.signal);
    ending.abort(new Error('the reason is nothing to a pause'));
    await paused;
    await pause(LONG_MS, ending.signal);
    assert.ok(performance.now() - startedMs < LONG_MS / 2);
  });

  test('leaves no listener on its signal', async () => {
    const { signal } = new AbortController();
    for (let n = 0; n < 20; n += 1) await pause(1, signal);
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
  });
});
