/** Which rotations of the master key wrapped the data keys of accounts again. */
import type { AccountId } from '../kernel/ids.ts';

export interface MasterKeyRotations {
  /**
   * Returns the names of the master keys that rotations wrapped the account's data key under, oldest first: none for a
   * key that was made under the current one. A name says nothing of its key.
   */
  rotationsOf(account: AccountId): Promise<readonly string[]>;
}
