/**
 * Who signed in to accounts, and what was refused, read from a read model: what is newer than the last `UsageRecorded`
 * of each account, which sums the rest.
 *
 * Invariants: the answer has the events that the usage ledger has: callers wait for that.
 */
import type { AccountId, Timestamp } from '../kernel/ids.ts';

/** Sign-ins that an answer names, and pairs of token and reason that it names. */
export const UNSUMMED_SIGN_INS_MAX = 100;
export const UNSUMMED_REFUSED_READS_MAX = 100;

export interface SignInFacts {
  /** Newest first. */
  readonly signIns: readonly {
    readonly at: Timestamp;
    /** In the order in which the person presented them. */
    readonly factors: readonly string[];
    /** Vault references; null if the request had none. */
    readonly sourceAddressRef: string | null;
    readonly userAgentRef: string | null;
  }[];
  /** How many more there were. */
  readonly moreSignIns: number;
  /** The reason is null if an older version wrote the event. */
  readonly failures: readonly { readonly factor: string; readonly reason: string | null; readonly count: number }[];
  /** By token and reason; the token is null where there are too many. */
  readonly refusedReads: readonly {
    readonly tokenId: string | null;
    readonly reason: string;
    readonly count: number;
  }[];
}

export interface SignInsReader {
  /** Returns what no `UsageRecorded` of the account sums: that of today, and before the sums are made of yesterday. */
  unsummedSignIns(account: AccountId): Promise<SignInFacts>;
}
