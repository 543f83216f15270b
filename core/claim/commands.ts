/** The commands of a name. */
import type { AccountId, Timestamp } from '../kernel/ids.ts';

export type ClaimCommand =
  | {
      readonly type: 'Claim';
      readonly account: AccountId;
      readonly now: Timestamp;
      readonly until: Timestamp;
      /** An account that the caller has abandoned, so that nobody can create it: its claim may be taken over. */
      readonly abandoned: AccountId | null;
    }
  | { readonly type: 'Confirm'; readonly account: AccountId }
  | { readonly type: 'Release'; readonly account: AccountId };
