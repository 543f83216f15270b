/** Rates that one node counts by itself. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createRate, KEYS_MAX } from '../../../apps/front-door/rates.ts';
import { createTestClock } from '../../support/test-clock.ts';

test('a rate admits the allowed number within any span, for each key separately, and does not count refusals', () => {
  const clock = createTestClock();
  const rate = createRate({ timesMax: 2, spanMs: 10_000, clock });
  assert.equal(rate.take('a'), null);
  clock.advance(4_000);
  assert.equal(rate.take('a'), null);
  assert.equal(rate.take('b'), null);
  assert.equal(rate.waitSeconds('b'), null);
  assert.equal(rate.waitSeconds('a'), 6);
  assert.equal(rate.take('a'), 6);
  clock.advance(5_999);
  assert.equal(rate.take('a'), 1);
  clock.advance(1);
  for (let n = 0; n < 3; n += 1) assert.equal(rate.waitSeconds('a'), null, 'asking counts nothing');
  assert.equal(rate.take('a'), null);
  assert.equal(rate.take('a'), 4);
});

test('a rate counts as many keys as the limit, and forgets the one that was used longest ago for one more', () => {
  const rate = createRate({ timesMax: 1, spanMs: 10_000, clock: createTestClock() });
  for (let n = 0; n < KEYS_MAX; n += 1) assert.equal(rate.take(`${n}`), null);
  assert.equal(rate.take('0'), 10);
  assert.equal(rate.take('one more'), null);
  assert.equal(rate.take('1'), null, 'it was forgotten');
  assert.equal(rate.take('0'), 10);
});
