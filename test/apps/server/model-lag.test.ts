/** How far a read model is behind the log, as it is shown. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createModelLags } from '../../../apps/server/model-lag.ts';
import type { LogPosition } from '../../../core/kernel/envelope.ts';

const at = (position: number): LogPosition => BigInt(position) as LogPosition;

describe('A read model', () => {
  test('that has reached the head of the log, or passed it, is not behind', () => {
    const lags = createModelLags(() => 0);
    assert.deepEqual(lags.see('branches', at(7), at(7)), { positions: 0, seconds: 0 });
    assert.deepEqual(lags.see('branches', at(8), at(7)), { positions: 0, seconds: 0 });
  });

  test('that does not move is behind for longer and longer', () => {
    let nowMs = 1_000;
    const lags = createModelLags(() => nowMs);
    assert.deepEqual(lags.see('branches', at(3), at(7)), { positions: 4, seconds: 0 });
    nowMs += 15_000;
    assert.deepEqual(lags.see('branches', at(3), at(9)), { positions: 6, seconds: 15 });
    nowMs += 15_000;
    assert.deepEqual(lags.see('branches', at(4), at(9)), { positions: 5, seconds: 30 });
    assert.deepEqual(lags.see('tags', at(8), at(9)), { positions: 1, seconds: 0 });
  });

  test('of a busy log that has applied what was there at the last look is as late as its newest events', () => {
    let nowMs = 1_000;
    const lags = createModelLags(() => nowMs);
    lags.see('branches', at(3), at(7));
    nowMs += 15_000;
    assert.deepEqual(lags.see('branches', at(7), at(9)), { positions: 2, seconds: 0 });
    nowMs += 5_000;
    assert.deepEqual(lags.see('branches', at(7), at(9)), { positions: 2, seconds: 5 });
  });
});
