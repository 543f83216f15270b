/** Work that the server does again and again. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { every } from '../../../apps/server/periodic.ts';

const HOUR_MS = 60 * 60_000;

describe('Periodic work', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const started = (firstMs?: number): { readonly count: () => number; readonly stop: () => Promise<void> } => {
    let runs = 0;
    const run = async (): Promise<void> => {
      runs += 1;
    };
    return { count: () => runs, stop: every(6 * HOUR_MS, run, assert.ifError, firstMs) };
  };

  test('that is rare comes soon after a start, also where every start is followed by another within its interval', async () => {
    for (let start = 0; start < 3; start += 1) {
      const { count, stop } = started(HOUR_MS / 3);
      await vi.advanceTimersByTimeAsync(HOUR_MS);
      assert.equal(count(), 1);
      await stop();
    }
  });

  test('comes once in each interval, and no more once it is stopped', async () => {
    const rare = started(HOUR_MS);
    const plain = started();
    await vi.advanceTimersByTimeAsync(14 * HOUR_MS);
    assert.deepEqual([rare.count(), plain.count()], [3, 2]);
    for (const { stop } of [rare, plain]) await stop();
    const early = started(HOUR_MS);
    await early.stop();
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);
    assert.deepEqual([rare.count(), plain.count(), early.count()], [3, 2, 0]);
  });
});
