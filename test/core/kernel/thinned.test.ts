/** What is kept of a long series. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { thinnedOut } from '../../../core/kernel/thinned.ts';

/** Adds numbers one by one, and thins out after each, as snapshots are saved. */
function after(count: number, unit = 1): number[] {
  let kept: number[] = [];
  for (let n = 1; n <= count; n += 1) {
    kept.push(n * unit);
    const dropped = new Set(thinnedOut(kept, unit));
    kept = kept.filter((number) => !dropped.has(number));
  }
  return kept;
}

describe('A series that is thinned out at each step', () => {
  test('keeps the newest, and all while it is short', () => {
    assert.deepEqual(after(8), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert.deepEqual(after(1_000).slice(-4), [997, 998, 999, 1_000]);
    assert.deepEqual(thinnedOut([], 1), []);
  });

  test('keeps few of very many', () => {
    assert.ok(after(1_000).length <= 40, `${after(1_000).length}`);
    assert.ok(after(3_000, 1_000).length <= 46, `${after(3_000, 1_000).length}`);
  });

  test('keeps one not far before any of its numbers', () => {
    const kept = after(1_000);
    for (let wanted = 10; wanted <= 1_000; wanted += 1) {
      const start = kept.filter((number) => number <= wanted).at(-1) ?? 0;
      const distance = 1_000 - start;
      assert.ok(wanted - start <= distance / 2 + 1, `${wanted} is read from ${start}`);
    }
  });
});
