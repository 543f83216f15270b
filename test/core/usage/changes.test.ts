/** How many changes a plan leaves to whom, and until when. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { type AccountId, type Timestamp, timestamp, uuid } from '../../../core/kernel/ids.ts';
import {
  CHANGES_BEYOND_QUOTA_FOR_REF_DELETIONS,
  CHANGES_KEPT_FOR_PERSON,
  type ChangeBy,
  waitForChange,
} from '../../../core/usage/changes.ts';

const ada: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');

function wait(
  quota: number | null,
  used: number,
  by: ChangeBy,
  now: Timestamp = timestamp('2026-11-30T23:59:58.500Z'),
) {
  const plans = { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, changes_per_month: quota } };
  return waitForChange(
    { plans, changes: { changesOf: async () => used }, clock: { now: () => now } },
    { id: ada, plan: 'FREE' },
    by,
  );
}

test('Tokens leave the last 1,000 of a quota to the person, and all of a smaller one', async () => {
  assert.equal(CHANGES_KEPT_FOR_PERSON, 1_000);
  for (const [quota, by, room] of [
    [200_000, 'token', 199_000],
    [200_000, 'person', 200_000],
    [200_000, 'ref-deletion', 200_000 + CHANGES_BEYOND_QUOTA_FOR_REF_DELETIONS],
    [1_001, 'token', 1],
    [1, 'person', 1],
  ] as const) {
    assert.equal(await wait(quota, room - 1, by), null, `${by} of ${quota}`);
    assert.equal(await wait(quota, room, by), 2, `${by} of ${quota}`);
  }
  for (const quota of [1_000, 999, 1, 0]) assert.equal(await wait(quota, 0, 'token'), 2, String(quota));
  assert.equal(await wait(0, 0, 'person'), 2);
});

test('A plan without a quota refuses nobody, and its changes are not read', async () => {
  assert.equal(await wait(null, Number.MAX_SAFE_INTEGER, 'token'), null);
});

test('The wait ends with the month in UTC, in every month', async () => {
  for (const [now, seconds] of [
    ['2026-11-30T23:59:59.999Z', 1],
    ['2026-12-31T23:59:00.000Z', 60],
    ['2027-02-28T00:00:00.000Z', 86_400],
    ['2028-02-28T00:00:00.000Z', 2 * 86_400],
    ['2026-11-01T00:00:00.000Z', 30 * 86_400],
  ] as const) {
    assert.equal(await wait(1, 1, 'person', timestamp(now)), seconds, now);
  }
});
