import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type ObjectId, objectId, type RepositoryId } from '../../../core/kernel/ids.ts';
import { StoredHistory } from '../../../projections/history/stored.ts';
import type { Queryable } from '../../../projections/runner/projection.ts';
import { newUuid } from '../../support/read-models.ts';

const [FIRST, SECOND, THIRD] = ['1', '2', '3'].map((digit) => objectId(digit.repeat(40))) as [
  ObjectId,
  ObjectId,
  ObjectId,
];

test('what was asked of several repositories together is not asked again, and what was not is', async () => {
  const [ours, theirs] = [newUuid<RepositoryId>(), newUuid<RepositoryId>()];
  const asked: unknown[] = [];
  const database: Queryable = {
    query: async ({ values = [] }) => {
      asked.push(values);
      const rows = asked.length === 1 ? [{ repository_id: ours, id: FIRST }] : [{ id: THIRD }];
      return { rows, rowCount: rows.length };
    },
  };
  const stored = new StoredHistory(database, (table) => table);
  await stored.askKnown(
    new Map([
      [ours, [FIRST, SECOND]],
      [theirs, [FIRST]],
    ]),
  );
  assert.deepEqual(asked, [
    [
      [ours, ours, theirs],
      [FIRST, SECOND, FIRST],
    ],
  ]);
  assert.deepEqual(await stored.known(ours, [FIRST, SECOND]), new Set([FIRST]));
  assert.deepEqual(await stored.known(theirs, [FIRST]), new Set());
  assert.equal(asked.length, 1);
  assert.deepEqual(await stored.known(ours, [FIRST, THIRD]), new Set([FIRST, THIRD]));
  assert.deepEqual(asked.at(-1), [ours, [THIRD]]);
});
