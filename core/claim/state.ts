/** Whether a name is free, waiting for its account, or held. */
import type { AccountId, Timestamp } from '../kernel/ids.ts';

export interface PendingClaim {
  readonly status: 'pending';
  readonly account: AccountId;
  readonly until: Timestamp;
}

export type Claim =
  | { readonly status: 'free' }
  | PendingClaim
  | { readonly status: 'held'; readonly account: AccountId };

/** Whether a claim waited for its account longer than it may. */
export function hasRunOut(claim: PendingClaim, now: Timestamp): boolean {
  return claim.until < now;
}
