/**
 * Whether an account may still be sent bytes this month.
 *
 * Must stay true: what this node sent counts at once. The projected sum is asked for at most once a second
 * and account, and again as soon as the meter was flushed, since that moves bytes from the one to the other.
 */
import { LRUCache } from 'lru-cache';
import type { OpenAccount } from '../../core/account/state.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { ApiContext } from './context.ts';

export interface TransferBudget {
  /** False once the quota of the account's plan is used up. */
  hasRoom(id: AccountId, account: OpenAccount): Promise<boolean>;
}

interface ProjectedSum {
  readonly bytes: number;
  readonly readAtMs: number;
  readonly flushes: number;
}

const SUM_AGE_MS_MAX = 1_000;
const ACCOUNTS_MAX = 10_000;

export function createTransferBudget({
  plans,
  usage,
  transfer,
  clock,
}: Pick<ApiContext, 'plans' | 'usage' | 'transfer' | 'clock'>): TransferBudget {
  const sums = new LRUCache<AccountId, ProjectedSum>({ max: ACCOUNTS_MAX });

  async function projected(id: AccountId): Promise<number> {
    const flushes = transfer.flushes();
    const readAtMs = clock.monotonicMs();
    const known = sums.get(id);
    const isFresh = known !== undefined && readAtMs - known.readAtMs <= SUM_AGE_MS_MAX;
    if (isFresh && known.flushes === flushes) return known.bytes;
    const { transferBytes: bytes } = await usage.usageOf(id);
    sums.set(id, { bytes, readAtMs, flushes });
    return bytes;
  }

  return {
    async hasRoom(id, account) {
      const quota = plans[account.plan].transfer_bytes;
      if (quota === null) return true;
      return (await projected(id)) + transfer.unflushedBytes(id) < quota;
    },
  };
}
