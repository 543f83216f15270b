/** The plans and their quotas. A quota of null is unlimited. */

export const PLANS = ['FREE', 'PRO', 'PLATFORM'] as const;
export type Plan = (typeof PLANS)[number];

export interface PlanQuotas {
  readonly repos: number | null;
  readonly storage_bytes: number | null;
  readonly transfer_bytes: number | null;
  readonly ingress_bytes: number | null;
  /** Whether accounts on this plan may bind repositories to storage buckets of their own. */
  readonly byo_storage: boolean;
}

export type Plans = { readonly [P in Plan]: PlanQuotas };

const GIB = 1024 ** 3;
const UNLIMITED: PlanQuotas = {
  repos: null,
  storage_bytes: null,
  transfer_bytes: null,
  ingress_bytes: null,
  byo_storage: true,
};

/** The quotas that apply unless the operator sets others. */
export const DEFAULT_PLANS: Plans = {
  FREE: { repos: 50, storage_bytes: 5 * GIB, transfer_bytes: 50 * GIB, ingress_bytes: 50 * GIB, byo_storage: false },
  PRO: UNLIMITED,
  PLATFORM: UNLIMITED,
};
