/** The state of a name: free, pending until its account is created, or held. */
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

/** Returns true if the time in which the account should have been created is over. */
export function hasRunOut(claim: PendingClaim, now: Timestamp): boolean {
  return claim.until < now;
}
