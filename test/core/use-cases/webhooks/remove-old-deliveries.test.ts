/** The removal of delivery bodies after retention. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { plusMs, type Timestamp } from '../../../../core/kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../../../core/kernel/limits.ts';
import { removeOldDeliveries } from '../../../../core/use-cases/webhooks/remove-old-deliveries.ts';
import { createTestClock } from '../../../support/test-clock.ts';

const RETENTION_MS = 86_400_000;

/** Returns a store with this many old bodies. */
function store(old: number, onRemoved: () => void = () => undefined, oldestAt: Timestamp | null = null) {
  const clock = createTestClock();
  const removals: { readonly before: Timestamp; readonly limit: number }[] = [];
  let left = old;
  const removeBefore = async (before: Timestamp, limit: number): Promise<number> => {
    removals.push({ before, limit });
    const removed = Math.min(left, limit);
    left -= removed;
    onRemoved();
    return removed;
  };
  const due = { backlog: async () => ({ pending: oldestAt === null ? 0 : 1, oldestAt }) };
  return {
    context: { clock, deliveries: { removeBefore }, due, retentionMs: RETENTION_MS },
    removals,
    left: () => left,
  };
}

describe('The bodies of deliveries', () => {
  test('are all removed if they are older than retention, a bounded number at a time', async () => {
    const { context, removals, left } = store(2_500);
    await removeOldDeliveries(context, new AbortController().signal);
    assert.equal(left(), 0);
    assert.deepEqual(new Set(removals.map(({ limit }) => limit)), new Set([1_000]));
    assert.equal(removals[0]?.before, plusMs(context.clock.now(), -RETENTION_MS));
  });

  test('stay beyond retention while a delivery has not ended that may need one, but for a day at most', async () => {
    const now = createTestClock().now();
    const before = async (oldestAt: Timestamp) => {
      const { context, removals } = store(0, () => undefined, oldestAt);
      await removeOldDeliveries(context, new AbortController().signal);
      return removals[0]?.before;
    };
    const since = plusMs(now, -RETENTION_MS);
    assert.equal(await before(since), since, 'one inside the retention holds nothing up');
    const older = plusMs(since, -10 * 60_000);
    const kept = await before(older);
    assert.ok(kept !== undefined && kept < older && kept > plusMs(older, -5 * 60_000), kept);
    const earliest = plusMs(since, -PENDING_DELIVERY_KEPT_MS);
    assert.equal(await before(plusMs(earliest, -1)), earliest);
  });

  test('are left to the next run if this one is aborted', async () => {
    const ending = new AbortController();
    const { context, left } = store(2_500, () => ending.abort());
    await removeOldDeliveries(context, ending.signal);
    assert.equal(left(), 1_500);
  });
});
