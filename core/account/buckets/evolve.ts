/** Folds the events of an account's storage buckets. */
import { byId, nullable, object, parsed, text, time, word } from '../../kernel/codec.ts';
import { type StorageBucketId, type Timestamp, uuid } from '../../kernel/ids.ts';
import { vaultRef } from '../../kernel/vault-ref.ts';
import type { Facet } from '../facet.ts';
import { type BucketEvent, bucketEventKinds, type StorageBucketCreated } from './events.ts';
import type { AccountBuckets, BucketFailure, StorageBucket } from './state.ts';

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

const storageBucket = object<StorageBucket>({
  id: parsed(uuid<StorageBucketId>),
  name: text,
  provider: word(),
  authMode: word(),
  placeRef: parsed(vaultRef),
  accessRef: parsed(vaultRef),
  status: word(),
  lastValidatedAt: nullable(time),
  lastFailure: nullable(object<BucketFailure>({ step: word(), code: word(), at: time })),
  createdAt: time,
  updatedAt: time,
});

export const accountBuckets: Facet<AccountBuckets, BucketEvent> = {
  kinds: bucketEventKinds,
  initial: { storageBuckets: new Map<StorageBucketId, StorageBucket>(), defaultBucketId: null },
  evolve: evolveBuckets,
  snapshot: object<AccountBuckets>({
    storageBuckets: byId(storageBucket),
    defaultBucketId: nullable(parsed(uuid<StorageBucketId>)),
  }),
  sizeBytes: ({ storageBuckets }) => storageBuckets.size * 1_000,
};
