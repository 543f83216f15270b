/** What can be asked of a name. */
import type { AccountId, Timestamp } from '../kernel/ids.ts';

export type ClaimCommand =
  | { readonly type: 'Claim'; readonly account: AccountId; readonly now: Timestamp; readonly until: Timestamp }
  | { readonly type: 'Confirm'; readonly account: AccountId }
  | { readonly type: 'Release'; readonly account: AccountId };
