/** How much that purges took out may wait to leave storage, by the storage of a plan. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { WAITING_STORAGE_BYTES_MIN, WAITING_STORAGE_FACTOR, waitingStorageQuota } from '../../../core/account/plans.ts';

test('What purges took out may be a number of times the storage of the plan, and at least as much as the least', () => {
  const least = WAITING_STORAGE_BYTES_MIN / WAITING_STORAGE_FACTOR;
  for (const [storage, quota] of [
    [null, null],
    [0, WAITING_STORAGE_BYTES_MIN],
    [least, WAITING_STORAGE_BYTES_MIN],
    [least + 1, WAITING_STORAGE_BYTES_MIN + WAITING_STORAGE_FACTOR],
  ] as const) {
    assert.equal(waitingStorageQuota({ storage_bytes: storage }), quota, `${storage}`);
  }
});
