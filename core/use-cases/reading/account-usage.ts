/** Reports what an account has used and what its plan allows. */
import { accounts } from '../../account/evolve.ts';
import type { Plans } from '../../account/plans.ts';
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { UsageReader } from '../../ports/usage.ts';
import type { Context } from '../../runtime/execute.ts';
import type { TransferMeter } from '../../usage/meter.ts';

export interface UsageContext extends Pick<Context, 'entities'> {
  readonly plans: Plans;
  readonly readModels: ReadModelProgress;
  readonly usage: UsageReader;
  readonly transfer: Pick<TransferMeter, 'unflushedBytes'>;
}

export interface UsedOfQuota {
  readonly used: number;
  /** Null: unlimited. */
  readonly quota: number | null;
}

export interface UsageOfPlan {
  readonly repositories: UsedOfQuota;
  readonly storageBytes: UsedOfQuota;
  /** Bytes that were sent in the current calendar month, UTC. */
  readonly transferBytes: UsedOfQuota;
  /** Bytes that were received in the current calendar month, UTC. */
  readonly ingressBytes: UsedOfQuota;
}

/**
 * Counts every event in the log up to `seen`, and the bytes that this node has sent but not yet written to the log.
 * Refused with `account-not-found`.
 */
export async function accountUsage(
  context: UsageContext,
  id: AccountId,
  seen: LogPosition,
): Promise<UsageOfPlan | { readonly refused: Refusal }> {
  const { state: account } = await context.entities.get(accounts, id);
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  await context.readModels.caughtUp(seen);
  const { storageBytes, transferBytes, ingressBytes } = await context.usage.usageOf(id);
  const quotas = context.plans[account.plan];
  return {
    // The account's own state decides this quota, so its count is exact.
    repositories: { used: account.repositories.size, quota: quotas.repos },
    storageBytes: { used: storageBytes, quota: quotas.storage_bytes },
    transferBytes: { used: transferBytes + context.transfer.unflushedBytes(id), quota: quotas.transfer_bytes },
    ingressBytes: { used: ingressBytes, quota: quotas.ingress_bytes },
  };
}
