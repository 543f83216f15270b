/** The plans and their quotas. A quota of null is unlimited. */
import { GIB } from '../kernel/byte-units.ts';

/** What purges took out may take this many times the storage of the plan until it has left, and at least this much. */
export const WAITING_STORAGE_FACTOR = 2;
export const WAITING_STORAGE_BYTES_MIN = GIB;

export const PLANS = ['FREE', 'PRO', 'PLATFORM'] as const;
export type Plan = (typeof PLANS)[number];

export interface PlanQuotas {
  readonly repos: number | null;
  readonly storage_bytes: number | null;
  readonly transfer_bytes: number | null;
  readonly ingress_bytes: number | null;
  /** Whether accounts on this plan may bind repositories to storage buckets of their own. */
  readonly byo_storage: boolean;
  /** Webhook deliveries of an account that may begin within an hour; further ones wait for a later hour. */
  readonly deliveries_per_hour: number | null;
  /** Requests and pushes of a calendar month, UTC, that append to the account's record. */
  readonly changes_per_month: number | null;
}

export type Plans = { readonly [P in Plan]: PlanQuotas };

/** Without quotas; deliveries are paced all the same, because every receiver's owner shares their sender. */
const UNLIMITED: PlanQuotas = {
  repos: null,
  storage_bytes: null,
  transfer_bytes: null,
  ingress_bytes: null,
  byo_storage: true,
  deliveries_per_hour: 50_000,
  changes_per_month: null,
};

/** The quotas that apply unless the operator sets others. */
export const DEFAULT_PLANS: Plans = {
  FREE: {
    repos: 50,
    storage_bytes: 5 * GIB,
    transfer_bytes: 50 * GIB,
    ingress_bytes: 50 * GIB,
    byo_storage: false,
    deliveries_per_hour: 5_000,
    changes_per_month: 200_000,
  },
  PRO: UNLIMITED,
  PLATFORM: UNLIMITED,
};

/** Returns how many bytes may wait to leave storage before a purge must wait as well. */
export function waitingStorageQuota({ storage_bytes: storage }: Pick<PlanQuotas, 'storage_bytes'>): number | null {
  return storage === null ? null : Math.max(WAITING_STORAGE_BYTES_MIN, WAITING_STORAGE_FACTOR * storage);
}
