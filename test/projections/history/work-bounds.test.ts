/** How much work for one repository may take that runs beside that for others. */
import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { AppendList } from '../../../core/kernel/append-list.ts';
import { type ObjectId, type RepositoryId, ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import { type HistoryReader, withReader } from '../../../projections/history/git-reading.ts';
import { orderChange } from '../../../projections/history/order.ts';
import {
  HISTORY_ORDERED_COMMITS_MAX,
  HISTORY_SPAN_MS,
  PATIENT_BOUNDS,
  TooMuchWork,
} from '../../../projections/history/work-bounds.ts';
import { onPlatform } from '../../support/layers-in.ts';

const COMMITTED: CommittedObjects = {
  repository: uuids.next<RepositoryId>(),
  place: onPlatform(),
  revision: 'none',
  shrinkEpoch: 0,
  keptSinceEpoch: null,
  layers: AppendList.from([]),
};

const unread = () => assert.fail('it is not read');

/** A branch of this many commits, of which all have one id. */
function branchOf(count: number): HistoryReader {
  async function* walk({ limit = count }: { readonly limit?: number }): AsyncGenerator<ObjectId> {
    for (let n = 0; n < count && n < limit; n += 1) yield ZERO_OBJECT_ID;
  }
  return { commits: unread, lookup: unread, walk };
}

describe('Patient work for one repository', () => {
  test('puts as many commits in order as the limit, and not one more', async () => {
    const ordered = (count: number) =>
      orderChange({
        reader: branchOf(count),
        ...{ oldTip: null, oldCommits: 0, newTip: ZERO_OBJECT_ID, newCommits: [] },
        stored: { commits: unread, fromTip: unread },
        commitsMax: PATIENT_BOUNDS.orderedCommits,
      });
    const order = await ordered(HISTORY_ORDERED_COMMITS_MAX);
    assert.ok(order.kind === 'replace');
    assert.equal(order.ids.length, HISTORY_ORDERED_COMMITS_MAX);
    await assert.rejects(ordered(HISTORY_ORDERED_COMMITS_MAX + 1), TooMuchWork);
  });

  test('may take as long as the limit, to the last moment, and no longer', async (context) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const signals = vi.spyOn(AbortSignal, 'timeout').mockImplementation((spanMs) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), spanMs);
      return controller.signal;
    });
    context.onTestFinished(() => {
      signals.mockRestore();
      vi.useRealTimers();
    });
    for (const [afterMs, isTooMuch] of [
      [HISTORY_SPAN_MS - 1, false],
      [HISTORY_SPAN_MS + 1, true],
    ] as const) {
      const open = (): Promise<never> =>
        new Promise((_, reject) => setTimeout(() => reject(new Error('The objects are away')), afterMs));
      const ended = withReader({ open }, COMMITTED, PATIENT_BOUNDS.spanMs, unread).catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(afterMs);
      assert.equal((await ended) instanceof TooMuchWork, isTooMuch);
    }
  });
});
