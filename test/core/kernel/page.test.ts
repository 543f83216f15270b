/** Pages of lists. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { hasMore, pageNumbered } from '../../../core/kernel/page.ts';

test('Pages count from 0, and the last is the one with the last item', () => {
  assert.deepEqual(pageNumbered(0, 50), { offset: 0, limit: 50 });
  assert.deepEqual(pageNumbered(3, 50), { offset: 150, limit: 50 });
  assert.equal(hasMore(pageNumbered(0, 50), 51), true);
  assert.equal(hasMore(pageNumbered(0, 50), 50), false);
  assert.equal(hasMore(pageNumbered(1, 50), 51), false);
});

test('A page far beyond the end of any list starts and ends at safe integers', () => {
  const far = pageNumbered(999_999_999_999_999, 100);
  assert.ok(Number.isSafeInteger(far.offset + far.limit));
  assert.equal(hasMore(far, Number.MAX_SAFE_INTEGER), false);
});
