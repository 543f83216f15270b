/** The decisions about an account's storage buckets. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ALL_REPOSITORIES, type RepositorySelection } from '../../../../core/access-token/repository-selection.ts';
import { bindRepository, type WantedBucket } from '../../../../core/account/buckets/binding.ts';
import type { BucketCommand } from '../../../../core/account/buckets/commands.ts';
import { decideBucket } from '../../../../core/account/buckets/decide.ts';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { timestamp } from '../../../../core/kernel/ids.ts';
import { STORAGE_BUCKET_NAME_LENGTH_MAX, STORAGE_BUCKETS_MAX } from '../../../../core/kernel/limits.ts';
import { DEPENDENT_NAMES_MAX } from '../../../../core/kernel/refusal.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import {
  accountClosed,
  accountCreated,
  bucketCreated,
  bucketId,
  bucketRefs,
  bucketVerified,
  defaultBucket,
  repositoryCreated,
  repositoryDeleted,
  repositoryId,
} from '../../../support/account-history.ts';
import { given } from '../../../support/fold.ts';

type CreateBucket = Extract<BucketCommand, { type: 'CreateBucket' }>;
type ChangeBucket = Extract<BucketCommand, { type: 'ChangeBucket' }>;

const bucket_id = bucketId(1);
const one = [accountCreated, bucketCreated(1)];
const inUse = [...one, bucketVerified(1), repositoryCreated(1, 'Tools', { storage_bucket_id: bucketId(1) })];
const placeRef = vaultRef('a'.repeat(64));
const accessRef = vaultRef('b'.repeat(64));
const place = { provider: 'MINIO', placeRef } as const;
const access = { authMode: 'STATIC_KEYS', accessRef } as const;
const some = (...ids: readonly number[]): RepositorySelection => ({
  scope: 'SELECTED_REPO',
  repositoryIds: ids.map(repositoryId),
});

function create(n: number, more: Partial<CreateBucket> = {}): CreateBucket {
  const settings = { provider: 'S3', authMode: 'OIDC', ...bucketRefs } as const;
  return { type: 'CreateBucket', id: bucketId(n), name: `bucket ${n}`, settings, isDefault: false, ...more };
}

function change(more: Partial<ChangeBucket>): ChangeBucket {
  return {
    type: 'ChangeBucket',
    id: bucket_id,
    from: bucketRefs,
    place: null,
    access: null,
    deleted: [],
    purged: null,
    ...more,
  };
}

function decision(history: readonly AccountEvent[], command: BucketCommand, selection = ALL_REPOSITORIES) {
  return decideBucket(given(accounts, ...history), selection, command);
}

/** Returns the events, or the code of the refusal. */
function decide(history: readonly AccountEvent[], command: BucketCommand, selection = ALL_REPOSITORIES) {
  const decided = decision(history, command, selection);
  return 'refused' in decided ? decided.refused.code : decided.events;
}

describe("An account's storage buckets", () => {
  test('are created with vault references, and become the default in the same append if that is wanted', () => {
    assert.deepEqual(decide([accountCreated], create(1)), [bucketCreated(1)]);
    assert.deepEqual(decide(one, create(2, { isDefault: true })), [bucketCreated(2), defaultBucket(2)]);
    assert.equal(decide([accountCreated, accountClosed], create(1)), 'account-not-found');
  });

  test('have names of one line that are unique without regard to case', () => {
    const long = (length: number) => decide([accountCreated], create(1, { name: '😀'.repeat(length) }));
    assert.equal(typeof long(STORAGE_BUCKET_NAME_LENGTH_MAX), 'object');
    assert.equal(long(STORAGE_BUCKET_NAME_LENGTH_MAX + 1), 'storage-bucket-name-length');
    for (const name of ['', ' ', ' a', 'a ', 'a\nb', 'a\u0007']) {
      assert.equal(decide(one, create(2, { name })), 'storage-bucket-name-length', JSON.stringify(name));
      assert.equal(decide(one, change({ name })), 'storage-bucket-name-length');
    }
    assert.equal(decide(one, create(2, { name: 'BUCKET 1' })), 'storage-bucket-name-taken');
    assert.equal(decide([...one, bucketCreated(2)], change({ name: 'Bucket 2' })), 'storage-bucket-name-taken');
    assert.equal(typeof decide(one, change({ name: 'Bucket 1' })), 'object', 'of itself it is free');
  });

  test('are as many as the limit, and no more', () => {
    const full = Array.from({ length: STORAGE_BUCKETS_MAX - 1 }, (_, n) => bucketCreated(n + 1));
    const last = bucketCreated(STORAGE_BUCKETS_MAX);
    assert.equal(typeof decide([accountCreated, ...full], create(99)), 'object');
    assert.equal(decide([accountCreated, ...full, last], create(99)), 'storage-bucket-limit-reached');
  });

  test('change by one event for each part, which names the record that it supersedes', () => {
    assert.deepEqual(decide(one, change({ name: 'new', isDefault: true, place, access })), [
      { type: 'StorageBucketRenamed', data: { bucket_id, name: 'new' } },
      {
        type: 'StorageBucketPlaceChanged',
        data: { bucket_id, provider: 'MINIO', place_ref: placeRef, removed_ref: bucketRefs.placeRef },
      },
      {
        type: 'StorageBucketAccessChanged',
        data: { bucket_id, auth_mode: 'STATIC_KEYS', access_ref: accessRef, removed_ref: bucketRefs.accessRef },
      },
      defaultBucket(1),
    ]);
    assert.deepEqual(decide(one, change({ name: 'bucket 1', isDefault: false })), []);
    assert.deepEqual(decide([...one, defaultBucket(1)], change({ isDefault: false })), [defaultBucket(null)]);
    assert.equal(decide([accountCreated], change({})), 'storage-bucket-not-found');
  });

  test('do not change on the ground of settings that somebody has changed since', () => {
    const from = { ...bucketRefs, placeRef };
    assert.equal(decide(one, change({ from, access })), 'storage-bucket-changed');
    assert.equal(typeof decide(one, change({ from, name: 'new' })), 'object', 'a name rests on no setting');
  });

  test('keep their place while repositories depend on it, but take new keys, a name and the default', () => {
    assert.deepEqual(decision(inUse, change({ place })), {
      refused: { code: 'storage-bucket-place-fixed', repositories: { names: ['Tools'], more: false } },
    });
    assert.equal(typeof decide(inUse, change({ access, name: 'new', isDefault: true })), 'object');
    assert.equal(typeof decide([...inUse, repositoryDeleted(1, 'Tools')], change({ place })), 'object');
  });

  test('keep their place while deleted repositories can come back to it, and name those that the caller may see', () => {
    const deleted = [1, 2].map((n) => ({
      ...{ id: repositoryId(n), name: `old ${n}`, description: null, initialDefaultBranch: null },
      ...{ storageBucketId: bucket_id, createdAt: timestamp('2026-11-21T10:00:00.000Z'), formerNames: [] },
    }));
    const none = { names: [], more: false };
    const fixed = { code: 'storage-bucket-place-fixed', repositories: none } as const;
    assert.deepEqual(decision(one, change({ place, deleted })), {
      refused: { ...fixed, deleted: { names: ['old 1', 'old 2'], more: false } },
    });
    assert.deepEqual(decision(one, change({ place, deleted }), some(2)), {
      refused: { ...fixed, deleted: { names: ['old 2'], more: true } },
    });
    assert.equal(typeof decide(one, change({ access, name: 'new', deleted })), 'object');
  });

  test('are neither deleted nor moved while purges have layers left there, whose size a limited caller does not learn', () => {
    const purged = { sizeBytes: 5_000, waitSeconds: 60 };
    const refused = (sizeBytes: number | null) => ({
      refused: { code: 'storage-bucket-purged', sizeBytes, waitSeconds: 60 },
    });
    const [remove, move] = [{ type: 'DeleteBucket', id: bucket_id, purged } as const, change({ place, purged })];
    for (const command of [remove, move]) {
      assert.deepEqual(decision(one, command), refused(5_000));
      assert.deepEqual(decision(one, command, some(1)), refused(null));
    }
    assert.equal(decide(inUse, remove), 'storage-bucket-in-use', 'that holds for longer');
    assert.equal(decide(inUse, move), 'storage-bucket-place-fixed');
    assert.equal(decide([...one, defaultBucket(1)], remove, some(1)), 'storage-bucket-needs-all-repositories');
    assert.equal(typeof decide(one, change({ access, name: 'new', purged })), 'object');
  });

  test('are verified or failed only in the settings that were tried', () => {
    const verify = (fault: Extract<BucketCommand, { type: 'RecordVerification' }>['fault'], of = bucketRefs) =>
      decide(one, { type: 'RecordVerification', id: bucket_id, of, fault });
    assert.deepEqual(verify(null), [bucketVerified(1)]);
    assert.deepEqual(verify({ step: 'put', code: 'access-denied' }), [
      { type: 'StorageBucketVerificationFailed', data: { bucket_id, step: 'put', code: 'access-denied' } },
    ]);
    for (const of of [
      { ...bucketRefs, placeRef },
      { ...bucketRefs, accessRef },
    ]) {
      assert.equal(verify(null, of), 'storage-bucket-changed');
      assert.equal(verify({ step: 'put', code: 'failed' }, of), 'storage-bucket-changed');
    }
  });

  test('are deleted with their records, but not while repositories depend on them', () => {
    const remove: BucketCommand = { type: 'DeleteBucket', id: bucket_id, purged: null };
    const removed_refs = [bucketRefs.placeRef, bucketRefs.accessRef];
    assert.deepEqual(decide(one, remove), [{ type: 'StorageBucketDeleted', data: { bucket_id, removed_refs } }]);
    assert.equal(decide(inUse, remove), 'storage-bucket-in-use');
    assert.equal(typeof decide([...inUse, repositoryDeleted(1, 'Tools')], remove), 'object');
    const many = Array.from({ length: DEPENDENT_NAMES_MAX + 1 }, (_, n) =>
      repositoryCreated(n + 10, `r${n + 10}`, { storage_bucket_id: bucketId(1) }),
    );
    const named = (history: readonly AccountEvent[]) => {
      const refused = decision(history, remove);
      assert.ok('refused' in refused && refused.refused.code === 'storage-bucket-in-use');
      return [refused.refused.repositories.names.length, refused.refused.repositories.more];
    };
    assert.deepEqual(named([...one, ...many.slice(1)]), [DEPENDENT_NAMES_MAX, false]);
    assert.deepEqual(named([...one, ...many]), [DEPENDENT_NAMES_MAX, true]);
  });

  test('cannot be turned against repositories that the caller may not use', () => {
    const denied = 'storage-bucket-needs-all-repositories';
    assert.equal(decide([accountCreated], create(1, { isDefault: true }), some(1)), denied);
    assert.equal(typeof decide([accountCreated], create(1), some(1)), 'object');
    assert.equal(decide(one, change({ isDefault: true }), some(1)), denied);
    assert.equal(decide([...one, defaultBucket(1)], change({ isDefault: false }), some(1)), denied);
    assert.equal(decide([...one, defaultBucket(1)], change({ access }), some(1)), denied, 'all to come use it');
    assert.equal(
      decide([...one, defaultBucket(1)], { type: 'DeleteBucket', id: bucket_id, purged: null }, some(1)),
      denied,
    );
    assert.equal(decide(inUse, change({ access }), some(2)), denied);
    assert.equal(decide(inUse, change({ name: 'mine' }), some(2)), denied);
    assert.equal(typeof decide(inUse, change({ access }), some(1)), 'object');
    assert.deepEqual(decision(inUse, { type: 'DeleteBucket', id: bucket_id, purged: null }, some(2)), {
      refused: { code: 'storage-bucket-in-use', repositories: { names: [], more: true } },
    });
  });
});

describe('The storage of a new repository', () => {
  function bind(history: readonly AccountEvent[], wanted: WantedBucket) {
    const account = given(accounts, ...history);
    assert.ok(account.status === 'open');
    const bound = bindRepository(account, wanted);
    return 'refused' in bound ? bound.refused.code : bound.storageBucketId;
  }

  test('is a verified bucket of the account, the default bucket if none is named, or the platform', () => {
    const verified = [...one, bucketVerified(1), defaultBucket(1)];
    assert.equal(bind(verified, null), null, 'null is the platform, whatever the default is');
    assert.equal(bind(one, 'default'), null);
    assert.equal(bind(one, bucketId(2)), 'storage-bucket-not-found');
    assert.equal(bind(one, bucketId(1)), 'storage-bucket-not-verified');
    assert.equal(bind([...one, defaultBucket(1)], 'default'), 'storage-bucket-not-verified');
    const failed: AccountEvent = {
      type: 'StorageBucketVerificationFailed',
      data: { bucket_id, step: 'put', code: 'failed' },
    };
    assert.equal(bind([...verified, failed], 'default'), 'storage-bucket-not-verified');
    assert.equal(bind(verified, 'default'), bucketId(1));
    assert.equal(bind(verified, bucketId(1)), bucketId(1));
  });
});
