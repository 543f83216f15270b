/** The statements that a batch is turned into. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { AppendList } from '../../../core/kernel/append-list.ts';
import { objectId, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { RepositoryPlan } from '../../../projections/history/plan.ts';
import { historyWrite } from '../../../projections/history/write.ts';
import type { Queryable } from '../../../projections/runner/projection.ts';
import { onPlatform } from '../../support/layers-in.ts';
import { newUuid } from '../../support/read-models.ts';

/** Plans a repository whose order gains `gained` commits before the `kept` ones. */
function planOf(kept: number, gained: number): RepositoryPlan {
  const id = newUuid<RepositoryId>();
  const ids = Array.from({ length: gained }, (_, n) => objectId(n.toString(16).padStart(40, '0')));
  const head = { accountId: newUuid(), initialDefaultBranch: null, defaultBranch: null, revision: 0, orderedTip: null };
  const stored = { storageBucketId: null, shrinkEpoch: 0, keptSinceEpoch: null };
  const none = {
    removed: null,
    returned: null,
    onlyExpires: false,
    storageBucketId: null,
    initialDefaultBranch: null,
    defaultBranch: null,
    revision: 0,
  };
  return {
    change: {
      ...{ id, accountId: newUuid(), ...none },
      ...{ refs: new Map(), layers: [], tips: new Set(), previousTips: new Set() },
    },
    before: null,
    layersKept: 0,
    after: { ...head, ...stored, orderedCommits: kept + gained, incomplete: false },
    commits: { commits: [], walk: null },
    order: { kind: 'replace', kept, ids },
    committed: {
      repository: id,
      revision: 0,
      place: onPlatform(),
      shrinkEpoch: 0,
      keptSinceEpoch: null,
      layers: AppendList.from([]),
    },
  };
}

test('a long order is written in ranges, each row once and numbered from the tip', async () => {
  const plan = planOf(7, 12_001);
  const unused = { open: () => Promise.reject(new Error('Nothing is read here')) };
  const write = historyWrite((table) => table, { removed: [], plans: [plan], objects: unused, spanMs: 1_000 });
  const lengths: number[] = [];
  const rows: { readonly number: number; readonly id: string }[] = [];
  const transaction: Queryable = {
    query: async ({ text, values = [] }) => {
      assert.match(text, /history_order/);
      const range = JSON.parse(String(values[0])) as typeof rows;
      lengths.push(range.length);
      rows.push(...range);
      return { rows: [], rowCount: range.length };
    },
  };
  await write.before?.(transaction);
  assert.ok(!write.lists.some(({ text, items }) => text.includes('history_order') && items.length > 0));
  assert.deepEqual(lengths, [5_000, 5_000, 2_001]);
  const { order } = plan;
  const expected = order.kind === 'keep' ? [] : order.ids.map((id, index) => [12_007 - index, `\\x${id}`]);
  assert.deepEqual(
    rows.map(({ number, id }) => [number, id]),
    expected,
  );
});
