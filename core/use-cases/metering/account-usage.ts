/** Reports what an account has used, in all and each day, and what its plan allows. */
import { accounts } from '../../account/evolve.ts';
import { type Plan, type Plans, waitingStorageQuota } from '../../account/plans.ts';
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Clock } from '../../ports/clock.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type {
  BucketStorage,
  BucketStorageReader,
  ChangesProgress,
  ChangesReader,
  DailyTrafficReader,
  DayTraffic,
  DeletedStorageReader,
  UsageReader,
  WaitingStorageReader,
} from '../../ports/usage.ts';
import type { Context } from '../../runtime/execute.ts';
import type { TransferMeter } from '../../usage/meter.ts';
import { removedThrough } from '../../usage/waiting-storage.ts';

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

export interface PlanRoom {
  readonly plan: Plan;
  readonly repositories: UsedOfQuota;
  /** Whether the plan takes storage buckets of the account. */
  readonly takesBuckets: boolean;
}

/** What the plan lets the account make; null if the account is not open. */
export async function planRoom(
  { entities, plans }: Pick<UsageContext, 'entities' | 'plans'>,
  id: AccountId,
): Promise<PlanRoom | null> {
  const { state } = await entities.get(accounts, id);
  if (state.status !== 'open') return null;
  const { plan, repositories } = state;
  const { repos, byo_storage: takesBuckets } = plans[plan];
  return { plan, repositories: { used: repositories.size, quota: repos }, takesBuckets };
}

/** Returns the part of the used storage that deleted repositories hold, until retention or a purge. */
export async function accountDeletedStorage(
  context: { readonly readModels: ReadModelProgress & DeletedStorageReader },
  id: AccountId,
  seen: LogPosition,
): Promise<number> {
  await context.readModels.caughtUp(seen);
  return context.readModels.deletedStorageBytes(id);
}

/** Returns the changes of the current calendar month, UTC, and those of the plan. Refused with `account-not-found`. */
export async function accountChanges(
  context: Pick<UsageContext, 'entities' | 'plans'> & { readonly readModels: ChangesReader & ChangesProgress },
  id: AccountId,
  seen: LogPosition,
): Promise<UsedOfQuota | { readonly refused: Refusal }> {
  const { state: account } = await context.entities.get(accounts, id);
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  await context.readModels.changesCaughtUp(seen);
  return { used: await context.readModels.changesOf(id), quota: context.plans[account.plan].changes_per_month };
}

export interface WaitingStorageContext extends Pick<Context, 'entities' | 'events'> {
  readonly plans: Plans;
  readonly marks: Pick<PolicyMarks, 'read'>;
  readonly readModels: ReadModelProgress & WaitingStorageReader;
}

/**
 * Returns what purges, drops and compactions took out of the account's repositories and platform storage still holds,
 * and how much of it purges may leave. Refused with `account-not-found`.
 */
export async function accountWaitingStorage(
  context: WaitingStorageContext,
  id: AccountId,
  seen: LogPosition,
): Promise<UsedOfQuota | { readonly refused: Refusal }> {
  const { state: account } = await context.entities.get(accounts, id);
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  await context.readModels.caughtUp(seen);
  const used = await context.readModels.waitingStorageBytes(id, await removedThrough(context));
  return { used, quota: waitingStorageQuota(context.plans[account.plan]) };
}

/** What lies in a bucket of the account, which no quota counts. */
export interface NamedBucketStorage extends BucketStorage {
  readonly name: string;
}

/** Returns the buckets of the account that repositories are in, in the order of their creation. */
export async function accountBucketStorage(
  context: Pick<UsageContext, 'entities'> & { readonly readModels: ReadModelProgress & BucketStorageReader },
  id: AccountId,
  seen: LogPosition,
): Promise<readonly NamedBucketStorage[]> {
  const { state: account } = await context.entities.get(accounts, id);
  if (account.status !== 'open') return [];
  await context.readModels.caughtUp(seen);
  const stored = new Map((await context.readModels.bucketStorage(id)).map((one) => [one.storageBucketId, one]));
  return [...account.storageBuckets.values()].flatMap(({ id: bucket, name }) => {
    const found = stored.get(bucket);
    return found === undefined ? [] : [{ ...found, name }];
  });
}

/**
 * Returns the days of the current calendar month on which the account sent or received something, oldest first. As in
 * `accountUsage`, today includes the bytes that this node has not written to the log yet.
 */
export async function accountTraffic(
  context: Pick<UsageContext, 'transfer'> & {
    readonly readModels: ReadModelProgress & DailyTrafficReader;
    readonly clock: Pick<Clock, 'now'>;
  },
  id: AccountId,
  seen: LogPosition,
): Promise<readonly DayTraffic[]> {
  await context.readModels.caughtUp(seen);
  const days = await context.readModels.dailyTraffic(id);
  const unflushed = context.transfer.unflushedBytes(id);
  if (unflushed === 0) return days;
  const today = context.clock.now().slice(0, 10);
  const known = days.find(({ day }) => day === today) ?? { day: today, transferBytes: 0, ingressBytes: 0 };
  const others = days.filter(({ day }) => day !== today);
  return [...others, { ...known, transferBytes: known.transferBytes + unflushed }];
}
