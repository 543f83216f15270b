/** Which errors of a storage bucket are recorded. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  BUCKET_ERROR_INTERVAL_MS,
  BUCKET_ERRORS_OF_DAY_MAX,
  decideBucketError,
} from '../../../core/bucket-errors/decide.ts';
import type { BucketErrorRecorded } from '../../../core/bucket-errors/events.ts';
import { bucketErrors, bucketErrorsOn } from '../../../core/bucket-errors/evolve.ts';
import { plusMs, timestamp } from '../../../core/kernel/ids.ts';
import { bucketId, repositoryId } from '../../support/account-history.ts';
import { FIRST_AT, fold } from '../../support/fold.ts';

type Data = BucketErrorRecorded['data'];

function error(more: Partial<Data> = {}): Data {
  const repository_id = repositoryId(1);
  return { bucket_id: bucketId(1), repository_id, operation: 'push', code: 'access-denied', ...more };
}

function recorded(history: readonly Data[], next: Data, afterMs: number): number {
  const events = history.map((data) => ({ event: { type: 'BucketErrorRecorded' as const, data }, at: FIRST_AT }));
  const decided = decideBucketError(fold(bucketErrors, events), next, plusMs(FIRST_AT, afterMs));
  assert.ok('events' in decided);
  return decided.events.length;
}

describe('An error of a storage bucket', () => {
  test('is recorded once in an interval for the same repository, operation and code', () => {
    assert.equal(recorded([], error(), 0), 1);
    assert.equal(recorded([error()], error(), BUCKET_ERROR_INTERVAL_MS - 1), 0);
    assert.equal(recorded([error()], error(), BUCKET_ERROR_INTERVAL_MS), 1);
    for (const other of [{ repository_id: repositoryId(2) }, { repository_id: null }, { operation: 'read' as const }]) {
      assert.equal(recorded([error()], error(other), 0), 1);
    }
    assert.equal(recorded([error()], error({ code: 'timed-out' }), 0), 1);
  });

  test('is recorded no more when the bucket has as many on one day as the limit', () => {
    const many = Array.from({ length: BUCKET_ERRORS_OF_DAY_MAX }, (_, n) => error({ repository_id: repositoryId(n) }));
    const next = error({ code: 'timed-out' });
    assert.equal(recorded(many.slice(1), next, 0), 1);
    assert.equal(recorded(many, next, 0), 0);
  });

  test('stands on a stream of its bucket and its day in UTC', () => {
    const ids = ['2026-11-23T23:59:59.999Z', '2026-11-24T00:00:00.000Z'].map((at) =>
      bucketErrorsOn(bucketId(1), timestamp(at)),
    );
    assert.deepEqual(ids, [`${bucketId(1)}-20261123`, `${bucketId(1)}-20261124`]);
  });
});
