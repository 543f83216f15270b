/** The state of storage buckets that an account's events fold into, and its form in a snapshot. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../../../core/kernel/json.ts';
import {
  accountCreated,
  bucketCreated,
  bucketId,
  bucketRefs,
  bucketVerified,
  defaultBucket,
} from '../../../support/account-history.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';

const bucket_id = bucketId(1);
const place_ref = 'a'.repeat(64);
const placeChanged: AccountEvent = {
  type: 'StorageBucketPlaceChanged',
  data: { bucket_id, provider: 'R2', place_ref, removed_ref: bucketRefs.placeRef },
};
const accessChanged: AccountEvent = {
  type: 'StorageBucketAccessChanged',
  data: { bucket_id, auth_mode: 'STATIC_KEYS', access_ref: place_ref, removed_ref: bucketRefs.accessRef },
};
const failed: AccountEvent = {
  type: 'StorageBucketVerificationFailed',
  data: { bucket_id, step: 'put', code: 'access-denied' },
};
const deleted: AccountEvent = { type: 'StorageBucketDeleted', data: { bucket_id, removed_refs: [] } };

function open(...history: readonly AccountEvent[]) {
  const state = given(accounts, accountCreated, bucketCreated(1), ...history);
  assert.ok(state.status === 'open');
  return state;
}

function bucket(...history: readonly AccountEvent[]) {
  const found = open(...history).storageBuckets.get(bucketId(1));
  assert.ok(found !== undefined);
  return found;
}

describe('A storage bucket', () => {
  test('is pending verification until one of its current settings succeeds or fails', () => {
    const at = (seconds: number) => plusMs(FIRST_AT, seconds * 1_000);
    assert.deepEqual(bucket(), {
      ...{ id: bucket_id, name: 'bucket 1', provider: 'S3', authMode: 'OIDC', ...bucketRefs },
      ...{ status: 'PENDING_VERIFICATION', lastValidatedAt: null, lastFailure: null },
      ...{ createdAt: at(1), updatedAt: at(1) },
    });
    const { status, lastValidatedAt } = bucket(bucketVerified(1));
    assert.deepEqual([status, lastValidatedAt], ['VERIFIED', at(2)]);
    const now = bucket(bucketVerified(1), failed);
    assert.deepEqual(
      [now.status, now.lastValidatedAt, now.lastFailure],
      ['FAILED', at(2), { step: 'put', code: 'access-denied', at: at(3) }],
    );
    assert.equal(bucket(failed, bucketVerified(1)).lastFailure, null);
  });

  test('returns to pending with a change of its place or its access, and with no other', () => {
    for (const changed of [placeChanged, accessChanged]) {
      const after = bucket(bucketVerified(1), failed, changed);
      assert.deepEqual([after.status, after.lastFailure], ['PENDING_VERIFICATION', null]);
    }
    const renamed: AccountEvent = { type: 'StorageBucketRenamed', data: { bucket_id, name: 'new' } };
    const after = bucket(bucketVerified(1), renamed, defaultBucket(1));
    assert.deepEqual([after.status, after.name], ['VERIFIED', 'new']);
    assert.equal(bucket(placeChanged).provider, 'R2');
    assert.equal(bucket(accessChanged).authMode, 'STATIC_KEYS');
  });

  test('is the default until another is, none is, or it is deleted', () => {
    assert.equal(open(defaultBucket(1)).defaultBucketId, bucket_id);
    assert.equal(open(bucketCreated(2), defaultBucket(1), defaultBucket(2)).defaultBucketId, bucketId(2));
    assert.equal(open(defaultBucket(1), defaultBucket(null)).defaultBucketId, null);
    const state = open(bucketCreated(2), defaultBucket(1), deleted);
    assert.deepEqual([state.defaultBucketId, [...state.storageBuckets.keys()]], [null, [bucketId(2)]]);
    assert.equal(open(bucketCreated(2), defaultBucket(2), deleted).defaultBucketId, bucketId(2));
  });

  test('is the same after a snapshot', () => {
    const { snapshots } = accounts;
    assert.ok(snapshots !== null);
    const histories = [[], [bucketVerified(1), failed, defaultBucket(1)], [accessChanged, bucketCreated(2)]];
    for (const history of histories) {
      const state = open(...history);
      const written = snapshots.write(state);
      assert.ok(written !== null);
      const read = snapshots.read(JSON.parse(canonicalJson(written)) as JsonObject);
      assert.ok(read.status === 'open');
      assert.deepEqual(read.storageBuckets, state.storageBuckets);
      assert.equal(read.defaultBucketId, state.defaultBucketId);
    }
  });

  test('takes memory, and an event of one that is not there is an impossible history', () => {
    assert.ok(accounts.sizeBytes(open(bucketCreated(2))) > accounts.sizeBytes(open()));
    assert.throws(() => given(accounts, accountCreated, bucketVerified(1)), TypeError);
    assert.throws(() => open(deleted, deleted), TypeError);
  });
});
