/** What an account has used so far: the projected sums that byte quotas are checked against. */
import type { AccountId } from '../kernel/ids.ts';

export interface AccountUsage {
  /** Layers of repositories that are not deleted. */
  readonly storageBytes: number;
  /** What fetches and contents sent in the current calendar month, UTC. */
  readonly transferBytes: number;
  /** What pushes brought in the current calendar month, UTC. */
  readonly ingressBytes: number;
}

export interface UsageReader {
  /** As far as the projection has come: at most moments behind the log. */
  usageOf(account: AccountId): Promise<AccountUsage>;
}
