/**
 * The logs of accounts, read from a read model: which events are an account's entries, in which order, and the hashes
 * of their Merkle tree (core/audit/).
 *
 * Invariants: an account's entries are its record events in log order, numbered from 0 without gaps. So a rebuilt
 * model has the same numbers and the same tree. Only events that the model has applied are counted: callers wait for it
 * first.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { LogPosition, StreamName } from '../kernel/envelope.ts';
import type { AccountId, Brand, EventId, RepositoryId, Timestamp } from '../kernel/ids.ts';

/** The SHA-256 of a leaf, of a node or of a tree (core/audit/tree.ts): 64 digits of hex. */
export type Hash = Brand<string, 'Hash'>;

/** Throws TypeError for a text that is no hash: the digests of the platform and our own rows always are. */
export function parseHash(text: string): Hash {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new TypeError(`Not a hash: ${JSON.stringify(text)}`);
  return text as Hash;
}

/** The complete subtree of `2 ** level` leaves that begins at leaf `index * 2 ** level`. */
export interface Subtree {
  readonly level: number;
  readonly index: number;
}

/** An event's place in its account's log. */
export interface EntryPlace {
  /** The index of the entry's leaf. */
  readonly sequence: number;
  readonly eventId: EventId;
  readonly stream: StreamName;
  readonly revision: number;
  readonly position: LogPosition;
  /** The latest `occurredAt` of this entry and of all entries before it. */
  readonly logTime: Timestamp;
  readonly leaf: Hash;
  /** That of the canonical text which the leaf is the hash of, so that readers know what they hold in memory. */
  readonly length: number;
}

/** The first `size` entries of a log. */
export interface LogPrefix {
  readonly size: number;
  /** The position of the last entry; `LOG_START` if there is none. */
  readonly position: LogPosition;
  /** The log time of the last entry; null if there is none. */
  readonly logTime: Timestamp | null;
}

/** Entries meet all members that are not null. */
export interface EntryFilter {
  readonly type: string | null;
  readonly stream: StreamName | null;
  /** The repository's own entries, and those of the account that name it. */
  readonly repositoryId: RepositoryId | null;
  readonly actorId: string | null;
  /** All that one request, or one run of a command, appended. */
  readonly requestId: string | null;
  /** Log times, inclusive. */
  readonly since: Timestamp | null;
  /** Log times, exclusive. */
  readonly until: Timestamp | null;
}

export const EVERY_ENTRY: EntryFilter = {
  type: null,
  stream: null,
  repositoryId: null,
  actorId: null,
  requestId: null,
  since: null,
  until: null,
};

/** The entries with a sequence from `from` up to but not including `to`. */
export interface EntryRange {
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  /** Oldest first unless it is true. */
  readonly newestFirst?: boolean;
}

export interface AccountLogReader {
  /** Resolves when the model has applied the log up to the position. */
  accountLogCaughtUp(position: LogPosition): Promise<void>;
  /** Returns the whole log, or as much of it as has this log time or an earlier one. */
  logPrefix(account: AccountId, at: Timestamp | null): Promise<LogPrefix>;
  /** Returns entries that meet the filter and are in the range, at most `limit` of them. */
  entryPlaces(account: AccountId, filter: EntryFilter | null, range: EntryRange): Promise<readonly EntryPlace[]>;
  /** Returns the entry that an event is; null if it is not one of the account's. */
  entryPlaceOf(account: AccountId, event: EventId): Promise<EntryPlace | null>;
  /** Returns accounts in the order of their ids, after this one, with the sizes of their logs. */
  accountLogs(
    after: AccountId | null,
    limit: number,
  ): Promise<readonly { readonly account: AccountId; readonly size: number }[]>;
  /** Returns the hashes of complete subtrees, in the order asked for. Each must be in the tree. */
  treeHashes(account: AccountId, subtrees: readonly Subtree[]): Promise<readonly Hash[]>;
}

/** The account's log is not a continuation of what was signed before. An operator must act. */
export class CheckpointError extends CodedError<'log-contradicts-checkpoint'> {
  override readonly name = 'CheckpointError';
}
