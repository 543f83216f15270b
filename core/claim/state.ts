/** Whether a name is free, waiting for its account, or held. */
import type { AccountId, Timestamp } from '../kernel/ids.ts';

export type Claim =
  | { readonly status: 'free' }
  | { readonly status: 'pending'; readonly account: AccountId; readonly until: Timestamp }
  | { readonly status: 'held'; readonly account: AccountId };
