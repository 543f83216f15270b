/** Exponential backoff. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { backoff } from '../../../core/kernel/backoff.ts';

function take(count: number, pauses: ReturnType<typeof backoff>): readonly number[] {
  return Array.from({ length: count }, () => pauses.next());
}

describe('The pauses of a backoff', () => {
  test('double from the first to the last, and stay there', () => {
    assert.deepEqual(take(6, backoff(50, 300)), [50, 100, 200, 300, 300, 300]);
  });

  test('start again at the first after a success', () => {
    const pauses = backoff(50, 300);
    take(4, pauses);
    pauses.reset();
    assert.deepEqual(take(2, pauses), [50, 100]);
  });

  test('are independent of those of another backoff', () => {
    const [one, other] = [backoff(1, 8), backoff(1, 8)];
    take(3, one);
    assert.deepEqual(take(2, other), [1, 2]);
  });
});
