/** How much an account has used: the sums of a projection, which byte quotas are checked against. */
import type { LogPosition } from '../kernel/envelope.ts';
import type { AccountId, RepositoryId, StorageBucketId, Timestamp, Uuid } from '../kernel/ids.ts';

export interface AccountUsage {
  /**
   * The size of the current layers of all repositories on platform storage, those of deleted ones until they leave it.
   */
  readonly storageBytes: number;
  /** Bytes that fetches and reads of file contents sent in the current calendar month, UTC. */
  readonly transferBytes: number;
  /** Bytes that pushes brought in the current calendar month, UTC. */
  readonly ingressBytes: number;
}

/** What was sent and received on a day, UTC. */
export interface DayTraffic {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly transferBytes: number;
  readonly ingressBytes: number;
}

export interface DailyTrafficReader {
  /** Returns the days of the current calendar month on which something was sent or received, oldest first. */
  dailyTraffic(account: AccountId): Promise<readonly DayTraffic[]>;
}

/** What lies in a bucket of a user. */
export interface BucketStorage {
  readonly storageBucketId: Uuid;
  /** Those that are not deleted. */
  readonly repositories: number;
  /** The size of the current layers, those of deleted repositories until they leave the bucket. */
  readonly storageBytes: number;
}

export interface BucketStorageReader {
  /** Returns the buckets of the account that repositories are in. */
  bucketStorage(account: AccountId): Promise<readonly BucketStorage[]>;
}

export interface DeletedStorageReader {
  /** Returns the part of `AccountUsage.storageBytes` that deleted repositories hold, until retention or a purge. */
  deletedStorageBytes(account: AccountId): Promise<number>;
}

/** How far the policies that remove layers from storage have read the log. */
export interface RemovedThrough {
  /** What compactions up to here replaced is gone. */
  readonly replaced: LogPosition;
  /** What purges up to here let go is gone. */
  readonly purged: LogPosition;
}

export interface PurgesOf {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  readonly removed: RemovedThrough;
  /** Bytes; null: unlimited. */
  readonly quota: number | null;
  /** Every event up to here counts. */
  readonly seen: LogPosition;
}

export interface Purges {
  /**
   * Null while what purges took out of the account's repositories on platform storage, and let go, is within the quota.
   * Else it is within the quota once what was let go up to this time has left storage.
   */
  readonly letGoUntil: Timestamp | null;
  /** When a purge last rewrote the repository; null for never, or some days ago. */
  readonly rewrittenAt: Timestamp | null;
}

export interface PurgedInBucket {
  readonly sizeBytes: number;
  /** When a purge let go the last of it; null if nothing is left. */
  readonly letGoUntil: Timestamp | null;
}

export interface WaitingStorageReader {
  /**
   * Returns the bytes that purges, drops and compactions took out of the lists of layers of an account's repositories,
   * and that platform storage still holds.
   */
  waitingStorageBytes(account: AccountId, removed: RemovedThrough): Promise<number>;
  /** Rejects after `READ_WAIT_MS` if the model has not seen the position. */
  purgesOf(wanted: PurgesOf): Promise<Purges>;
  /** Returns what purges have still to remove from a bucket of the account. Waits as `purgesOf` does. */
  purgedInBucket(wanted: {
    readonly account: AccountId;
    readonly bucket: StorageBucketId;
    readonly removed: RemovedThrough;
    readonly seen: LogPosition;
  }): Promise<PurgedInBucket>;
}

export interface UsageReader {
  /** Returns the sums that the projection has now; it is usually only moments behind the log. */
  usageOf(account: AccountId): Promise<AccountUsage>;
}

export interface ChangesReader {
  /**
   * Returns the changes of the account in the current calendar month, UTC, as far as the model has counted them; it is
   * usually only moments behind the log.
   */
  changesOf(account: AccountId): Promise<number>;
}

export interface ChangesProgress {
  /** Resolves when the changes up to the position are counted; rejects after `READ_WAIT_MS`. */
  changesCaughtUp(position: LogPosition): Promise<void>;
}
