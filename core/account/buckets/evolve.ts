/** Folds the events of an account's storage buckets. */
import type { BucketFaultCode, BucketStep } from '../../kernel/bucket-fault.ts';
import { type StorageBucketId, type Timestamp, timestamp, uuid } from '../../kernel/ids.ts';
import type { JsonObject } from '../../kernel/json.ts';
import { vaultRef } from '../../kernel/vault-ref.ts';
import type { Facet } from '../facet.ts';
import { type BucketEvent, bucketEventKinds, type StorageBucketCreated } from './events.ts';
import type { BucketAuthMode, BucketProvider } from './settings.ts';
import type { AccountBuckets, BucketStatus, StorageBucket } from './state.ts';

function evolveBuckets(state: AccountBuckets, event: BucketEvent, at: Timestamp): AccountBuckets {
  if (event.type === 'DefaultBucketChanged') {
    const { bucket_id } = event.data;
    return { ...state, defaultBucketId: bucket_id === null ? null : uuid<StorageBucketId>(bucket_id) };
  }
  const id = uuid<StorageBucketId>(event.data.bucket_id);
  const storageBuckets = new Map(state.storageBuckets);
  const { defaultBucketId } = state;
  if (event.type === 'StorageBucketCreated') {
    storageBuckets.set(id, createdBucket(id, event, at));
    return { storageBuckets, defaultBucketId };
  }
  const bucket = storageBuckets.get(id);
  if (bucket === undefined) throw new TypeError(`${event.type} of a bucket that is not there`);
  if (event.type === 'StorageBucketDeleted') {
    storageBuckets.delete(id);
    return { storageBuckets, defaultBucketId: defaultBucketId === id ? null : defaultBucketId };
  }
  storageBuckets.set(id, { ...bucket, ...bucketChange(event, at), updatedAt: at });
  return { storageBuckets, defaultBucketId };
}

function createdBucket(id: StorageBucketId, { data }: StorageBucketCreated, at: Timestamp): StorageBucket {
  return {
    id,
    name: data.name,
    provider: data.provider,
    authMode: data.auth_mode,
    placeRef: vaultRef(data.place_ref),
    accessRef: vaultRef(data.access_ref),
    lastValidatedAt: null,
    ...PENDING,
    createdAt: at,
    updatedAt: at,
  };
}

const PENDING = { status: 'PENDING_VERIFICATION', lastFailure: null } as const;

function bucketChange(
  event: Exclude<BucketEvent, { type: 'StorageBucketCreated' | 'StorageBucketDeleted' | 'DefaultBucketChanged' }>,
  at: Timestamp,
): Partial<StorageBucket> {
  switch (event.type) {
    case 'StorageBucketRenamed':
      return { name: event.data.name };
    case 'StorageBucketPlaceChanged':
      return { provider: event.data.provider, placeRef: vaultRef(event.data.place_ref), ...PENDING };
    case 'StorageBucketAccessChanged':
      return { authMode: event.data.auth_mode, accessRef: vaultRef(event.data.access_ref), ...PENDING };
    case 'StorageBucketVerified':
      return { status: 'VERIFIED', lastValidatedAt: at, lastFailure: null };
    case 'StorageBucketVerificationFailed': {
      const { step, code } = event.data;
      return { status: 'FAILED', lastFailure: { step, code, at } };
    }
  }
}

/** The stored form, which only this file writes and reads. A change of it raises the version of the snapshot. */
type BucketsSnapshot = {
  readonly storageBuckets: readonly {
    readonly id: string;
    readonly name: string;
    readonly provider: BucketProvider;
    readonly authMode: BucketAuthMode;
    readonly placeRef: string;
    readonly accessRef: string;
    readonly status: BucketStatus;
    readonly lastValidatedAt: string | null;
    readonly lastFailure: { readonly step: BucketStep; readonly code: BucketFaultCode; readonly at: string } | null;
    readonly createdAt: string;
    readonly updatedAt: string;
  }[];
  readonly defaultBucketId: string | null;
};

/** The cast is sound because only `writeSnapshot` below makes these members. */
function parseSnapshot(snapshot: JsonObject): BucketsSnapshot {
  return snapshot as BucketsSnapshot;
}

function storedBucket(stored: BucketsSnapshot['storageBuckets'][number]): StorageBucket {
  const { lastValidatedAt, lastFailure } = stored;
  return {
    ...stored,
    id: uuid(stored.id),
    placeRef: vaultRef(stored.placeRef),
    accessRef: vaultRef(stored.accessRef),
    lastValidatedAt: lastValidatedAt === null ? null : timestamp(lastValidatedAt),
    lastFailure: lastFailure === null ? null : { ...lastFailure, at: timestamp(lastFailure.at) },
    createdAt: timestamp(stored.createdAt),
    updatedAt: timestamp(stored.updatedAt),
  };
}

export const accountBuckets: Facet<AccountBuckets, BucketEvent> = {
  kinds: bucketEventKinds,
  initial: { storageBuckets: new Map<StorageBucketId, StorageBucket>(), defaultBucketId: null },
  evolve: evolveBuckets,
  writeSnapshot({ storageBuckets, defaultBucketId }) {
    const stored = [...storageBuckets.values()].map((bucket) => ({
      ...bucket,
      lastFailure: bucket.lastFailure === null ? null : { ...bucket.lastFailure },
    }));
    return { storageBuckets: stored, defaultBucketId } satisfies BucketsSnapshot;
  },
  readSnapshot(snapshot) {
    const { storageBuckets, defaultBucketId } = parseSnapshot(snapshot);
    return {
      storageBuckets: new Map(storageBuckets.map(storedBucket).map((bucket) => [bucket.id, bucket])),
      defaultBucketId: defaultBucketId === null ? null : uuid<StorageBucketId>(defaultBucketId),
    };
  },
  sizeBytes: ({ storageBuckets }) => storageBuckets.size * 1_000,
};
