/** When a server counts as silent: after calls waited, nothing was answered, and a question got no answer either. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { watchForSilence } from '../../../adapters/eventstoredb/silence.ts';

const QUIET_MS = 1_000;

/** A watch whose server answers questions with `answers`; counts what happens. */
function watchServer(answers: { lives: boolean }) {
  const seen = { asked: 0, silent: 0, lastAnswerMs: 0 };
  const watch = watchForSilence({
    quietMs: QUIET_MS,
    lastAnswerMs: () => seen.lastAnswerMs,
    ask: async () => {
      seen.asked += 1;
      return answers.lives;
    },
    onSilent: () => {
      seen.silent += 1;
    },
  });
  return { seen, watch };
}

describe('a server', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  test('is asked nothing while no call waits', async () => {
    const { seen, watch } = watchServer({ lives: false });
    watch.waits()();
    await vi.advanceTimersByTimeAsync(10 * QUIET_MS);
    assert.deepEqual([seen.asked, seen.silent], [0, 0]);
  });

  test('is asked when calls got no answer for the whole time, and counts as silent without one', async () => {
    const { seen, watch } = watchServer({ lives: false });
    watch.waits();
    watch.waits();
    await vi.advanceTimersByTimeAsync(QUIET_MS - 1);
    assert.equal(seen.asked, 0);
    await vi.advanceTimersByTimeAsync(1);
    assert.deepEqual([seen.asked, seen.silent], [1, 1]);
  });

  test('is not asked while it answers some of the calls', async () => {
    const { seen, watch } = watchServer({ lives: false });
    watch.waits();
    for (let step = 0; step < 10; step += 1) {
      seen.lastAnswerMs = performance.now();
      await vi.advanceTimersByTimeAsync(QUIET_MS - 1);
    }
    assert.equal(seen.asked, 0);
  });

  test('is asked again and again while it only answers that', async () => {
    const { seen, watch } = watchServer({ lives: true });
    const answered = watch.waits();
    await vi.advanceTimersByTimeAsync(3 * QUIET_MS);
    answered();
    answered();
    await vi.advanceTimersByTimeAsync(3 * QUIET_MS);
    assert.deepEqual([seen.asked, seen.silent], [3, 0]);
  });

  test('is forgotten after the end', async () => {
    const { seen, watch } = watchServer({ lives: false });
    watch.waits();
    watch.end();
    await vi.advanceTimersByTimeAsync(3 * QUIET_MS);
    assert.deepEqual([seen.asked, seen.silent], [0, 0]);
  });
});
