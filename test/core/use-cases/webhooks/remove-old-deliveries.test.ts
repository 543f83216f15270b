/** The removal of delivery bodies after retention. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { plusMs, type Timestamp } from '../../../../core/kernel/ids.ts';
import { removeOldDeliveries } from '../../../../core/use-cases/webhooks/remove-old-deliveries.ts';
import { createTestClock } from '../../../support/test-clock.ts';

const RETENTION_MS = 86_400_000;

/** Returns a store with this many old bodies. */
function store(old: number, onRemoved: () => void = () => undefined) {
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
  return { context: { clock, deliveries: { removeBefore }, retentionMs: RETENTION_MS }, removals, left: () => left };
}

describe('The bodies of deliveries', () => {
  test('are all removed if they are older than retention, a bounded number at a time', async () => {
    const { context, removals, left } = store(2_500);
    await removeOldDeliveries(context, new AbortController().signal);
    assert.equal(left(), 0);
    assert.deepEqual(new Set(removals.map(({ limit }) => limit)), new Set([1_000]));
    assert.equal(removals[0]?.before, plusMs(context.clock.now(), -RETENTION_MS));
  });

  test('are left to the next run if this one is aborted', async () => {
    const ending = new AbortController();
    const { context, left } = store(2_500, () => ending.abort());
    await removeOldDeliveries(context, ending.signal);
    assert.equal(left(), 1_500);
  });
});
