/** Events of an account's storage buckets, on `account-<id>`. */
import type { BucketFaultCode, BucketStep } from '../../kernel/bucket-fault.ts';
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../../kernel/decider.ts';
import type { BucketAuthMode, BucketProvider } from './settings.ts';

/** The bucket is pending verification. */
export type StorageBucketCreated = DomainEvent<
  'StorageBucketCreated',
  {
    readonly bucket_id: string;
    readonly name: string;
    readonly provider: BucketProvider;
    readonly auth_mode: BucketAuthMode;
    /**
     * Vault references (docs/architecture.md, invariant 5): bucket, prefix and endpoint; the role, or region and keys.
     */
    readonly place_ref: string;
    readonly access_ref: string;
  }
>;
export type StorageBucketRenamed = DomainEvent<
  'StorageBucketRenamed',
  { readonly bucket_id: string; readonly name: string }
>;
/** The bucket is pending verification again. `removed_ref` is the record that is removed after the event. */
export type StorageBucketPlaceChanged = DomainEvent<
  'StorageBucketPlaceChanged',
  {
    readonly bucket_id: string;
    readonly provider: BucketProvider;
    readonly place_ref: string;
    readonly removed_ref: string;
  }
>;
/** It has the form of `StorageBucketPlaceChanged`. */
export type StorageBucketAccessChanged = DomainEvent<
  'StorageBucketAccessChanged',
  {
    readonly bucket_id: string;
    readonly auth_mode: BucketAuthMode;
    readonly access_ref: string;
    readonly removed_ref: string;
  }
>;
/** All steps of a verification succeeded, with the place and the access that are current at this event. */
export type StorageBucketVerified = DomainEvent<'StorageBucketVerified', { readonly bucket_id: string }>;
/** What the provider said is not here: it may name the role or the place. */
export type StorageBucketVerificationFailed = DomainEvent<
  'StorageBucketVerificationFailed',
  { readonly bucket_id: string; readonly step: BucketStep; readonly code: BucketFaultCode }
>;
/** Null: repositories are in platform storage unless their creator names a bucket. */
export type DefaultBucketChanged = DomainEvent<'DefaultBucketChanged', { readonly bucket_id: string | null }>;
/** The bucket is the default no more. `removed_refs` are the records that are removed after the event. */
export type StorageBucketDeleted = DomainEvent<
  'StorageBucketDeleted',
  { readonly bucket_id: string; readonly removed_refs: readonly string[] }
>;

export type BucketEvent =
  | StorageBucketCreated
  | StorageBucketRenamed
  | StorageBucketPlaceChanged
  | StorageBucketAccessChanged
  | StorageBucketVerified
  | StorageBucketVerificationFailed
  | DefaultBucketChanged
  | StorageBucketDeleted;

export const bucketEventKinds: EventKinds<BucketEvent> = {
  StorageBucketCreated: RECORD_V1,
  StorageBucketRenamed: RECORD_V1,
  StorageBucketPlaceChanged: RECORD_V1,
  StorageBucketAccessChanged: RECORD_V1,
  StorageBucketVerified: RECORD_V1,
  StorageBucketVerificationFailed: RECORD_V1,
  DefaultBucketChanged: RECORD_V1,
  StorageBucketDeleted: RECORD_V1,
};
