/** How much an account has used: the sums of a projection, which byte quotas are checked against. */
import type { AccountId, Uuid } from '../kernel/ids.ts';

export interface AccountUsage {
  /** The size of all layers of repositories on platform storage that are not deleted. */
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
  /** Repositories that are not deleted, and the size of their layers. */
  readonly repositories: number;
  readonly storageBytes: number;
}

export interface BucketStorageReader {
  /** Returns the buckets of the account that repositories are in. */
  bucketStorage(account: AccountId): Promise<readonly BucketStorage[]>;
}

export interface UsageReader {
  /** Returns the sums that the projection has now; it is usually only moments behind the log. */
  usageOf(account: AccountId): Promise<AccountUsage>;
}
