/**
 * The events of usage: reads, refused reads and refused pushes by account, node and minute on
 * `transfer-<account>-<node>-<day>`, and sums by day on `usage-<account>`.
 *
 * Invariants: transfer events are operational. Their streams are pruned whole after retention, which is why each
 * stream holds one day only. A crash may lose up to a minute of transfer. `UsageRecorded` is a record event, kept for
 * ever, and sums operational events that the log held before it: a sum over both would count all of them twice.
 */
import type { DomainEvent, EventKind, EventKinds } from '../kernel/decider.ts';
import { type StreamName, streamName } from '../kernel/envelope.ts';
import type { AccountId, Timestamp } from '../kernel/ids.ts';
import { isJsonObject, type JsonObject } from '../kernel/json.ts';

/** Who read, in the form of an event's actor. */
export type Reader = { readonly kind: 'token' | 'user' | 'trust_rule'; readonly id: string };

/** The reads and the refused pushes of one reader in one repository. */
type ReadSum = {
  readonly reader: Reader;
  readonly repository_id: string;
  readonly reads: number;
  /** Bytes that git fetches and reads of file contents sent. */
  readonly sent_bytes: number;
  /** Bytes of pushes that were refused, and whose packs arrived whole. What a push brings is in `RefsUpdated`. */
  readonly received_bytes: number;
};

/** How often reads were refused to a token of the account, for one reason. */
export type RefusedReads = {
  /** Null: tokens that the event has no room for. */
  readonly token_id: string | null;
  /** A `RefusedReadReason` of whichever version counted it. */
  readonly reason: string;
  readonly count: number;
};

/** Why a read was refused to a token. */
export type RefusedReadReason =
  | 'grant-missing'
  | 'scope-missing'
  /** No repository has the name that was asked for, or the token does not see it. */
  | 'repository-not-found'
  | 'rate-exceeded'
  | 'transfer-quota-reached'
  | 'token-expired'
  /** Or its trust rule was changed or deleted. */
  | 'token-revoked';

/** What earlier versions reserved: the digest of a stored object. Nothing ever wrote one. */
type DetailsDigest = { readonly sha256: string; readonly size_bytes: number };

/** Who got in and who did not since the previous `UsageRecorded`. */
export type UsageDetails = {
  /** The first ones, at most `USAGE_SIGN_INS_MAX`. */
  readonly sign_ins: readonly {
    /** RFC 3339. */
    readonly at: string;
    /** In the order in which the person presented them. */
    readonly factors: readonly string[];
    /** Vault references; null if the request had none. */
    readonly source_address_ref: string | null;
    readonly user_agent_ref: string | null;
  }[];
  /**
   * The references of the sign-ins, each once: verifiers look for what an entry opens in members that are named so, and
   * not within lists of objects.
   */
  readonly source_address_refs: readonly string[];
  readonly user_agent_refs: readonly string[];
  /** How many sign-ins are not named. */
  readonly more_sign_ins: number;
  readonly failures: readonly { readonly factor: string; readonly reason: string | null; readonly count: number }[];
  readonly refused_reads: readonly RefusedReads[];
};

/** The same within a minute, and where they came from. */
type MinuteReadSum = ReadSum & {
  /** Vault references, each once. Some addresses of a busy minute are left out. */
  readonly address_refs: readonly string[];
};

export type TransferRecorded = DomainEvent<
  'TransferRecorded',
  {
    /** RFC 3339, the start of the minute. It determines the calendar month that the bytes count in. */
    readonly minute: string;
    /** The bytes of all reads, including those that `by_reader` has no room for. */
    readonly sent_bytes: number;
    /** Those of all refused pushes. */
    readonly received_bytes: number;
    readonly by_reader: readonly MinuteReadSum[];
    readonly refused_reads: readonly RefusedReads[];
  }
>;

/** Upcasts version 1, which knew only readers with an access token, and kept no details. */
function fromTokens({ by_token, ...data }: JsonObject): JsonObject {
  const sums = Array.isArray(by_token) ? by_token : [];
  const by_reader = sums.filter(isJsonObject).map(({ token_id = null, ...sum }) => ({
    reader: { kind: 'token', id: token_id },
    ...sum,
  }));
  return { ...data, by_reader, details: null };
}

/** Upcasts version 2, which reserved an object with addresses that was never written. */
function withoutAddresses(data: JsonObject): JsonObject {
  const { details: _, by_reader, ...rest } = data;
  const sums = Array.isArray(by_reader) ? by_reader : [];
  return { ...rest, by_reader: sums.filter(isJsonObject).map((sum) => ({ ...sum, address_refs: [] })) };
}

/** Upcasts version 3, and a day of `UsageRecorded` version 1: refused pushes were not counted. */
function withNothingReceived({ by_reader, ...sums }: JsonObject): JsonObject {
  const readers = Array.isArray(by_reader) ? by_reader : [];
  const named = readers.filter(isJsonObject).map((sum) => ({ ...sum, received_bytes: 0 }));
  return { ...sums, received_bytes: 0, by_reader: named };
}

/** Writes the same versions: who only pushed is left out. */
function withoutReceived(data: JsonObject): JsonObject {
  const { received_bytes: _, by_reader, ...sums } = data;
  const readers = (Array.isArray(by_reader) ? by_reader : []).filter(isJsonObject);
  const read = readers.filter(({ reads }) => reads !== 0);
  return { ...sums, by_reader: read.map(({ received_bytes: __, ...sum }) => sum) };
}

/** Upcasts version 4: refused reads were not counted. */
function withNoRefusedReads(data: JsonObject): JsonObject {
  return { ...data, refused_reads: [] };
}

/** Writes version 4. */
function withoutRefusedReads(data: JsonObject): JsonObject {
  const { refused_reads: _, ...sums } = data;
  return sums;
}

const TRANSFER_RECORDED: EventKind = {
  version: 5,
  record: false,
  upcasters: [fromTokens, withoutAddresses, withNothingReceived, withNoRefusedReads],
  downcasters: [withoutRefusedReads, withoutReceived],
};

export const transferEventKinds: EventKinds<TransferRecorded> = { TransferRecorded: TRANSFER_RECORDED };

/** Returns the stream of the events that a node appends on a day (UTC). `node`: letters and digits. */
export function transferStream(account: AccountId, node: string, appendedAt: Timestamp): StreamName {
  return streamName('transfer', `${account}-${node}-${appendedAt.slice(0, 10).replaceAll('-', '')}`);
}

/** Once a day: the sums of an account's operational events since its previous `UsageRecorded`. */
export type UsageRecorded = DomainEvent<
  'UsageRecorded',
  {
    /** `YYYY-MM-DD`, UTC: the day that has ended. */
    readonly day: string;
    /**
     * The last operational event in these sums; the account's later ones belong to the next `UsageRecorded`. The
     * position is that of the log the event was written to: in an imported log, find the event by its id.
     */
    readonly through: { readonly event_id: string; readonly position: string } | null;
    /** By the day on which the bytes were sent: an event that was appended late counts in an earlier day. */
    readonly transfer: readonly {
      readonly day: string;
      readonly sent_bytes: number;
      readonly received_bytes: number;
      readonly by_reader: readonly ReadSum[];
    }[];
    readonly webhook_attempts: number;
    readonly sign_in_failures: number;
    /** Null if an older version wrote it: read it with `detailsOf`. */
    readonly details: UsageDetails | DetailsDigest | null;
  }
>;

function ofEachDay(change: (day: JsonObject) => JsonObject): (data: JsonObject) => JsonObject {
  return ({ transfer, ...data }) => {
    const days = Array.isArray(transfer) ? transfer : [];
    return { ...data, transfer: days.filter(isJsonObject).map(change) };
  };
}

/** Upcasts version 2, whose `details` nothing filled. */
function withUnfilledDetails(data: JsonObject): JsonObject {
  return data;
}

/** Writes version 2. */
function withoutDetails({ details = null, ...data }: JsonObject): JsonObject {
  return { ...data, details: isJsonObject(details) && 'sign_ins' in details ? null : details };
}

const USAGE_RECORDED: EventKind = {
  version: 3,
  record: true,
  upcasters: [ofEachDay(withNothingReceived), withUnfilledDetails],
  downcasters: [withoutDetails, ofEachDay(withoutReceived)],
};

/** Returns the details of the sums; null if the version that wrote them had none. */
export function detailsOf({ details }: Pick<UsageRecorded['data'], 'details'>): UsageDetails | null {
  return details !== null && 'sign_ins' in details ? details : null;
}

export const usageEventKinds: EventKinds<UsageRecorded> = { UsageRecorded: USAGE_RECORDED };
