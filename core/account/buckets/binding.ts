/**
 * Where the layers of a repository are stored: the binding of a new one, which never changes afterwards, and whether
 * what is bound to a bucket can still be reached there.
 *
 * Invariants: a bucket that is not verified gets no new repository. Each place that a bucket is given has a vault
 * record of its own, so another record is another place, whatever it says.
 */
import { refuse } from '../../kernel/decider.ts';
import type { StorageBucketId } from '../../kernel/ids.ts';
import type { LostPlace, Refusal } from '../../kernel/refusal.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { Account } from '../state.ts';
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

/** The bucket of a repository, and the place that it had at a moment. */
export interface BoundPlace {
  /** Null: platform storage. */
  readonly storageBucketId: StorageBucketId | null;
  /** Null on platform storage, and if the account had no such bucket. */
  readonly placeRef: VaultRef | null;
}

/** Returns the place that a repository has in this state of its account. */
export function boundPlace(account: Account, { storageBucketId }: Pick<BoundPlace, 'storageBucketId'>): BoundPlace {
  return { storageBucketId, placeRef: bucketOf(account, storageBucketId)?.placeRef ?? null };
}

/** Returns why a place of before is not the account's any more; null if it is. Platform storage always is. */
export function lostPlace(account: Account, { storageBucketId, placeRef }: BoundPlace): LostPlace | null {
  if (storageBucketId === null) return null;
  const bucket = bucketOf(account, storageBucketId);
  if (bucket === undefined) return 'bucket-deleted';
  return bucket.placeRef === placeRef ? null : 'bucket-moved';
}

function bucketOf(account: Account, id: StorageBucketId | null) {
  return id !== null && 'storageBuckets' in account ? account.storageBuckets.get(id) : undefined;
}
