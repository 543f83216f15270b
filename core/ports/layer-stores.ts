/**
 * The stores of layers: the platform's, and a store for each bucket of a user. A repository's binding, which never
 * changes, chooses one of them.
 *
 * Invariants: one slow or dead bucket takes a bounded number of connections, and never the time of a repository
 * that is stored elsewhere.
 */
import type { BucketOperation } from '../kernel/bucket-fault.ts';
import type { AccountId, Uuid } from '../kernel/ids.ts';
import type { LayerKey } from '../repository/layer.ts';
import type { LayerStore } from './layer-store.ts';

/** Where a repository's layers are stored. */
export interface LayerPlace {
  readonly account: AccountId;
  /** A bucket of that account. Null: the platform's storage. */
  readonly storageBucketId: Uuid | null;
}

export interface LayerStores {
  readonly platform: LayerStore;
  /**
   * Returns the store of a place. Each of its calls uses the credentials that the bucket has at that moment, and
   * rejects with a `LayerStoreError` if the bucket cannot be used. A failure of a bucket is added to the list of its
   * errors, under the operation that the calls serve.
   */
  of(place: LayerPlace, operation: BucketOperation): LayerStore;
  /** Tells that a layer that was read has other bytes than its event names. It neither waits nor throws. */
  altered(place: LayerPlace, key: LayerKey): void;
}
