/** Counts that are forgotten after a while. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createRecentCounts } from '../../../core/kernel/recent-counts.ts';

test('a count lasts for its span, and is forgotten after two', () => {
  let now = 0;
  const counts = createRecentCounts({ spanMs: 100, keysMax: 10, monotonicMs: () => now });
  counts.add('a', 1);
  counts.add('a', 2);
  now = 150;
  assert.equal(counts.of('a'), 3);
  counts.add('a', 1);
  now = 250;
  assert.equal(counts.of('a'), 1);
  now = 1_000;
  assert.equal(counts.of('a'), 0);
});

test('a count that is taken back after it was forgotten is nothing, and not a credit', () => {
  let now = 0;
  const counts = createRecentCounts({ spanMs: 100, keysMax: 10, monotonicMs: () => now });
  counts.add('a', 1);
  now = 1_000;
  counts.add('a', -1);
  assert.equal(counts.of('a'), 0);
});

test('the counts of at most twice the bound of keys are kept, the newest', () => {
  const counts = createRecentCounts({ spanMs: 100, keysMax: 10, monotonicMs: () => 0 });
  for (let n = 0; n < 25; n += 1) counts.add(`key-${n}`, 1);
  const kept = Array.from({ length: 25 }, (_, n) => n).filter((n) => counts.of(`key-${n}`) === 1);
  assert.deepEqual(
    kept,
    Array.from({ length: 15 }, (_, n) => n + 10),
  );
});
