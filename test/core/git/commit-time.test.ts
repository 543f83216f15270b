/** The time of a commit, for any number of seconds that git stores. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { commitTime } from '../../../core/git/commit-time.ts';

test('The time of a commit is that of its seconds, and outside 1970 to 9999 the nearest time in that span', () => {
  for (const [seconds, time] of [
    [1_200_000_000, '2008-01-10T21:20:00.000Z'],
    [0, '1970-01-01T00:00:00.000Z'],
    [-1, '1970-01-01T00:00:00.000Z'],
    [253_402_300_799, '9999-12-31T23:59:59.000Z'],
    [253_402_300_800, '9999-12-31T23:59:59.000Z'],
    [Number.MAX_SAFE_INTEGER, '9999-12-31T23:59:59.000Z'],
  ] as const) {
    assert.equal(commitTime(seconds), time);
  }
});
