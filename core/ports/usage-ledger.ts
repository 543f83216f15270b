/**
 * The usage ledger of accounts, read from a read model: what each figure of usage is the sum of, and what each access
 * token did.
 *
 * Invariants: a month's entries, in their order, have a place each that never changes, so a page continues where the
 * one before it ended whatever was added since. What is shown does not depend on whether events that a `UsageRecorded`
 * sums are still in the log.
 */
import type { ActorKind, LogPosition } from '../kernel/envelope.ts';
import type { AccessTokenId, AccountId, EventId, RepositoryId, Timestamp } from '../kernel/ids.ts';

/** The figures of usage. `repos` and `storage_bytes` are levels; the others are sums of a calendar month (UTC). */
export type LedgerMember = 'repos' | 'storage_bytes' | 'transfer_bytes' | 'ingress_bytes';

/** Entries are in the order of these members. */
export interface LedgerPlace {
  /** For transfer the minute in which the bytes were sent, or the start of their day; else the time of the event. */
  readonly at: Timestamp;
  readonly eventId: EventId;
  /** Distinguishes the entries of one event. */
  readonly index: number;
}

export interface LedgerEntry extends LedgerPlace {
  readonly member: LedgerMember;
  readonly delta: number;
  /** Null for reads that the event names no repository of. */
  readonly repositoryId: RepositoryId | null;
  /** The access token that caused it; null if none did, or it is not known. */
  readonly tokenId: AccessTokenId | null;
  /** Whether the event is operational: it is no entry of the account's log, and is pruned after retention. */
  readonly operational: boolean;
}

export interface LedgerPage {
  /** The levels when the month began. */
  readonly opening: { readonly [Member in 'repos' | 'storage_bytes']: number };
  readonly entries: readonly LedgerEntry[];
  /** Whether the month has entries after these. */
  readonly hasMore: boolean;
  /** The levels when the month ended, or now, and the sums of the month, whatever the page. */
  readonly totals: { readonly [Member in LedgerMember]: number };
}

/** Where a use lies among those of its token. */
export interface TokenUsePlace {
  /** The start of the minute. */
  readonly minute: Timestamp;
  readonly repositoryId: RepositoryId;
}

/** What an access token did in a repository within a minute. */
export interface TokenUse extends TokenUsePlace {
  /** Fetches, and reads of contents. */
  readonly reads: number;
  /** Pushes and restorations. */
  readonly writes: number;
  /** The addresses that these came from, at most `TOKEN_USE_ADDRESSES_MAX`. */
  readonly addressRefs: readonly string[];
}

/** Where an access lies among those of its repository. */
export interface RepositoryUsePlace {
  /** The start of the minute, or of the day. */
  readonly minute: Timestamp;
  /** Whether it is a day of reads whose minutes have passed the retention. */
  readonly wholeDay: boolean;
  readonly kind: ActorKind;
  /** The id of an actor. */
  readonly id: string;
}

/** What somebody did in a repository within a minute. */
export interface RepositoryUse extends RepositoryUsePlace {
  readonly reads: number;
  readonly pushes: number;
  readonly restores: number;
  /** The addresses that these came from, at most `TOKEN_USE_ADDRESSES_MAX`. */
  readonly addressRefs: readonly string[];
}

export interface UsageLedgerReader {
  /** Resolves when the ledger has every event up to the position. */
  usageLedgerCaughtUp(position: LogPosition): Promise<void>;
  /** `month` is `YYYY-MM`; `after` is null for the beginning. What lies in buckets of users is not in the ledger. */
  usageLedger(
    account: AccountId,
    month: string,
    page: {
      readonly after: LedgerPlace | null;
      readonly limit: number;
      /** `YYYY-MM-DD`: reads of earlier days are shown by the sums of `UsageRecorded`, if one sums them. */
      readonly minutesFrom: string;
    },
  ): Promise<LedgerPage>;
  /** Returns the uses of the account's token, oldest first. */
  tokenUses(
    account: AccountId,
    token: AccessTokenId,
    page: { readonly after: TokenUsePlace | null; readonly limit: number },
  ): Promise<{ readonly uses: readonly TokenUse[]; readonly hasMore: boolean }>;
  /**
   * Returns who read and wrote the account's repository, oldest first: in minutes from that of `since` on which begin
   * before `until`. Reads of days before `minutesFrom` are shown as in `usageLedger`.
   */
  repositoryUses(
    wanted: {
      readonly account: AccountId;
      readonly repository: RepositoryId;
      readonly since: Timestamp | null;
      readonly until: Timestamp | null;
      /** `YYYY-MM-DD`. */
      readonly minutesFrom: string;
    },
    page: { readonly after: RepositoryUsePlace | null; readonly limit: number },
  ): Promise<{ readonly uses: readonly RepositoryUse[]; readonly hasMore: boolean }>;
}
