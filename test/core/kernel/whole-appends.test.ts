/** Splitting lists of events between appends. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition, RecordedEvent } from '../../../core/kernel/envelope.ts';
import { batchesOf, throughPosition, wholeAppends } from '../../../core/kernel/whole-appends.ts';
import { placedEvents } from '../../support/events.ts';

const revisions = (batches: readonly (readonly RecordedEvent[])[]): number[][] =>
  batches.map((batch) => batch.map(({ revision }) => revision));
const at = (position: number): LogPosition => BigInt(position) as LogPosition;

describe('Events in whole appends', () => {
  test('are one list for each append', () => {
    assert.deepEqual(revisions(wholeAppends(placedEvents(1, 3, 2))), [[0], [1, 2, 3], [4, 5]]);
    assert.deepEqual(wholeAppends([]), []);
  });

  test('are split at the limit, or after the append that crosses it', () => {
    const events = placedEvents(1, 3, 2, 1);
    assert.deepEqual(revisions(batchesOf(events, 2)), [[0, 1, 2, 3], [4, 5], [6]]);
    assert.deepEqual(revisions(batchesOf(events, 4)), [
      [0, 1, 2, 3],
      [4, 5, 6],
    ]);
    assert.deepEqual(revisions(batchesOf(events, 100)), [[0, 1, 2, 3, 4, 5, 6]]);
  });

  test('end where the rest of an append is missing', () => {
    // The last two events of the first append of three; of the second, the first and the last.
    const events = placedEvents(3, 3, 1);
    const left = events.filter(({ revision }) => ![0, 4].includes(revision));
    assert.deepEqual(revisions(wholeAppends(left)), [[1, 2], [3], [5], [6]]);
  });

  test('up to a position include the whole append that contains it', () => {
    const events = placedEvents(1, 3, 2);
    for (const [position, last] of [
      [0, undefined],
      [1, 0],
      [2, 3],
      [4, 3],
      [5, 5],
      [9, 5],
    ] as const) {
      assert.equal(throughPosition(events, at(position)).at(-1)?.revision, last, `up to ${position}`);
    }
  });
});
