/**
 * Where the layers of a new repository are to be stored. It never changes afterwards.
 *
 * Must stay true: a bucket that is not verified gets no new repository.
 */
import { refuse } from '../../kernel/decider.ts';
import type { StorageBucketId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccountBuckets } from './state.ts';

/** Null: platform storage. `default`: the account's default bucket, or platform storage if it has none. */
export type WantedBucket = StorageBucketId | 'default' | null;

/** Returns the bucket that the repository is bound to; null: platform storage. */
export function bindRepository(
  account: AccountBuckets,
  wanted: WantedBucket,
): { readonly storageBucketId: StorageBucketId | null } | { readonly refused: Refusal } {
  const storageBucketId = wanted === 'default' ? account.defaultBucketId : wanted;
  if (storageBucketId === null) return { storageBucketId };
  const bucket = account.storageBuckets.get(storageBucketId);
  if (bucket === undefined) return refuse({ code: 'storage-bucket-not-found' });
  if (bucket.status !== 'VERIFIED') return refuse({ code: 'storage-bucket-not-verified' });
  return { storageBucketId };
}
