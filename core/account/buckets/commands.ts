/** The commands of an account's storage buckets. */
import type { BucketFaultCode, BucketStep } from '../../kernel/bucket-fault.ts';
import type { StorageBucketId } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { OwnedRepository } from '../repositories/state.ts';
import type { BucketAuthMode, BucketProvider } from './settings.ts';

/** The records of a bucket's settings. A command that rests on settings is refused when they are no longer current. */
export interface BucketRefs {
  readonly placeRef: VaultRef;
  readonly accessRef: VaultRef;
}

export interface NewPlace {
  readonly provider: BucketProvider;
  readonly placeRef: VaultRef;
}

export interface NewAccess {
  readonly authMode: BucketAuthMode;
  readonly accessRef: VaultRef;
}

/** What purges have still to remove from a bucket. */
export interface PurgedLayers {
  readonly sizeBytes: number;
  /** When they have left it, as far as that is known. */
  readonly waitSeconds: number;
}

export type BucketCommand =
  | {
      readonly type: 'CreateBucket';
      readonly id: StorageBucketId;
      readonly name: string;
      readonly settings: NewPlace & NewAccess;
      readonly isDefault: boolean;
    }
  | {
      readonly type: 'ChangeBucket';
      readonly id: StorageBucketId;
      readonly name?: string;
      readonly isDefault?: boolean;
      /** The settings that `place` and `access` were made from. */
      readonly from: BucketRefs;
      /** Null: as it was. */
      readonly place: NewPlace | null;
      readonly access: NewAccess | null;
      /** The deleted repositories that can come back to the place of before. Only a change of the place needs them. */
      readonly deleted: readonly OwnedRepository[];
      /** Null: no purge has layers left there. Only a change of the place needs it. */
      readonly purged: PurgedLayers | null;
    }
  | {
      readonly type: 'RecordVerification';
      readonly id: StorageBucketId;
      /** The settings that were verified. */
      readonly of: BucketRefs;
      /** Null: every step succeeded. */
      readonly fault: { readonly step: BucketStep; readonly code: BucketFaultCode } | null;
    }
  | { readonly type: 'DeleteBucket'; readonly id: StorageBucketId; readonly purged: PurgedLayers | null };
