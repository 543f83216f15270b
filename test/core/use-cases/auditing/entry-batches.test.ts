/** What is read of an account's log in one step. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { entryBatches } from '../../../../core/use-cases/auditing/entry-batches.ts';

const BOUNDS = { countMax: 3, lengthMax: 100 };

function batched(...lengths: readonly number[]): readonly (readonly number[])[] {
  const places = lengths.map((length) => ({ length }));
  return [...entryBatches(places, BOUNDS)].map((batch) => batch.map(({ length }) => length));
}

// The attack: an account whose entries are all as large as an append may be asks for its state, or for a page of them.
describe('Entries that are read in one step', () => {
  test('have the bound of length together, and not one more', () => {
    assert.deepEqual(batched(50, 50, 1), [[50, 50], [1]]);
    assert.deepEqual(batched(50, 51), [[50], [51]]);
  });

  test('are one, if it alone is longer', () => {
    assert.deepEqual(batched(1, 101, 1), [[1], [101], [1]]);
    assert.deepEqual(batched(101), [[101]]);
  });

  test('are as many as the bound, and not one more', () => {
    assert.deepEqual(batched(1, 1, 1, 1), [[1, 1, 1], [1]]);
    assert.deepEqual(batched(), []);
  });
});
