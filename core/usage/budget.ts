/**
 * The transfer budget: whether the server may still send bytes of an account's repositories this month.
 *
 * Invariants: bytes that this node sent count immediately. The projected sum is read at most once a second for each
 * account, and again as soon as the meter was flushed, because a flush moves bytes from the meter to the projection.
 */
import type { Plan, Plans } from '../account/plans.ts';
import type { AccountId } from '../kernel/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { UsageReader } from '../ports/usage.ts';
import type { TransferMeter } from './meter.ts';

export interface TransferBudget {
  /** Returns false if the transfer quota of the account's plan is used up. */
  hasRoom(account: AccountId, plan: Plan): Promise<boolean>;
}

/** The sum that the projection returned for an account, when it was read, and the meter's flushes before the read. */
export interface ProjectedSum {
  readonly bytes: number;
  readonly readAtMs: number;
  readonly flushes: number;
}

/** A cache of projected sums; it may drop any of them at any time. */
export interface ProjectedSums {
  get(account: AccountId): ProjectedSum | undefined;
  set(account: AccountId, sum: ProjectedSum): void;
}

export interface TransferBudgetContext {
  readonly plans: Plans;
  readonly usage: UsageReader;
  readonly transfer: Pick<TransferMeter, 'flushes' | 'unflushedBytes'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** How old a sum may be that is used again. Internal: it is how fresh a sum is. */
const SUM_AGE_MS_MAX = 1_000;

export function createTransferBudget(
  { plans, usage, transfer, clock }: TransferBudgetContext,
  sums: ProjectedSums,
): TransferBudget {
  async function projected(account: AccountId): Promise<number> {
    const flushes = transfer.flushes();
    const readAtMs = clock.monotonicMs();
    const known = sums.get(account);
    const isFresh = known !== undefined && readAtMs - known.readAtMs <= SUM_AGE_MS_MAX;
    if (isFresh && known.flushes === flushes) return known.bytes;
    const { transferBytes: bytes } = await usage.usageOf(account);
    sums.set(account, { bytes, readAtMs, flushes });
    return bytes;
  }

  return {
    async hasRoom(account, plan) {
      const quota = plans[plan].transfer_bytes;
      if (quota === null) return true;
      return (await projected(account)) + transfer.unflushedBytes(account) < quota;
    },
  };
}
