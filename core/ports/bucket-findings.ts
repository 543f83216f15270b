/**
 * What the last verification of a storage bucket found out about its provider, beside whether it can be used.
 *
 * Invariants: it is no record. Without it a bucket works, and its next verification finds it out again.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, StorageBucketId } from '../kernel/ids.ts';
import type { VaultRef } from '../kernel/vault-ref.ts';

export interface BucketFindings {
  /** Whether of several that write a new key one alone succeeds. Without, a put looks first whether its key is free. */
  readonly conditionalWrites: boolean;
  /** Whether the provider compares what arrives with its hash. Without, an object is read back after its put. */
  readonly checksBodies: boolean;
}

/** A bucket at one place: what was found at another says nothing about this one. */
export interface FoundAt {
  readonly account: AccountId;
  readonly bucket: StorageBucketId;
  readonly place: VaultRef;
}

export interface BucketFindingRows {
  /** Replaces what was noted of the bucket before. */
  note(at: FoundAt, findings: BucketFindings): Promise<void>;
  /** Null if nothing is noted of the bucket at this place. */
  find(at: FoundAt): Promise<BucketFindings | null>;
  /** Removes what is noted of a bucket; of the whole account if `bucket` is null. */
  remove(account: AccountId, bucket: StorageBucketId | null): Promise<void>;
}

/** The findings could not be reached. */
export class BucketFindingsError extends CodedError<'bucket-findings-unavailable'> {
  override readonly name = 'BucketFindingsError';
}
