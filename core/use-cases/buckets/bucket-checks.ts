/**
 * Tries connections to buckets, a bounded number at the same time.
 *
 * Invariants: an account whose buckets answer slowly does not hold up another's verification.
 */
import { createFairSlots } from '../../kernel/fair-slots.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { BucketChecked, BucketConnection, Buckets } from '../../ports/buckets.ts';

/** Concurrent verifications on a node: in all, and of one account. Internal: further checks wait. */
const BUCKET_CHECKS_AT_ONCE_MAX = 8;
const BUCKET_CHECKS_AT_ONCE_OF_ACCOUNT_MAX = 2;

export interface BucketChecks {
  /** Does what `Buckets.check` does, when it is the account's turn. */
  check(account: AccountId, connection: BucketConnection): Promise<BucketChecked>;
}

/** Makes the checks of one node. */
export function createBucketChecks(buckets: Pick<Buckets, 'check'>): BucketChecks {
  const slots = createFairSlots({
    slots: BUCKET_CHECKS_AT_ONCE_MAX,
    slotsPerKey: BUCKET_CHECKS_AT_ONCE_OF_ACCOUNT_MAX,
  });
  return {
    async check(account, connection) {
      const release = await slots.acquire(account);
      try {
        return await buckets.check(connection);
      } finally {
        release();
      }
    },
  };
}
