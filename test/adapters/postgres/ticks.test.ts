/** One timer for all that waits for the same interval. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { createTicks } from '../../../adapters/postgres/ticks.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe('A tick', () => {
  test('calls back all who wait at the same time, though they came one after another', () => {
    const ticks = createTicks(500);
    const called: string[] = [];
    ticks.next(() => called.push('first'));
    vi.advanceTimersByTime(499);
    ticks.next(() => called.push('second'));
    assert.deepEqual(called, []);
    vi.advanceTimersByTime(1);
    assert.deepEqual(called, ['first', 'second']);
    assert.equal(vi.getTimerCount(), 0);
  });

  test('calls back once, and whoever waits again from within at the next tick', () => {
    const ticks = createTicks(500);
    let calls = 0;
    ticks.next(() => {
      calls += 1;
      ticks.next(() => void (calls += 1));
    });
    vi.advanceTimersByTime(500);
    assert.equal(calls, 1);
    vi.advanceTimersByTime(5_000);
    assert.equal(calls, 2);
  });

  test('does not call back whoever took that back, and then keeps no timer', () => {
    const ticks = createTicks(500);
    const forget = ticks.next(() => assert.fail('called back'));
    forget();
    assert.equal(vi.getTimerCount(), 0);
    forget();
    let calls = 0;
    ticks.next(() => void (calls += 1));
    vi.advanceTimersByTime(500);
    assert.equal(calls, 1);
  });
});
