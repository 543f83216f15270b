/**
 * The events of usage: reads and refused pushes by account, node and minute on `transfer-<account>-<node>-<day>`, and
 * sums by day on `usage-<account>`.
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

/** The digest of a stored object that holds details, which is kept until retention ends. */
type DetailsDigest = { readonly sha256: string; readonly size_bytes: number };

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

const TRANSFER_RECORDED: EventKind = {
  version: 4,
  record: false,
  upcasters: [fromTokens, withoutAddresses, withNothingReceived],
  downcasters: [withoutReceived],
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
    /** Details that are not in the event: the complete sums. */
    readonly details: DetailsDigest | null;
  }
>;

function ofEachDay(change: (day: JsonObject) => JsonObject): (data: JsonObject) => JsonObject {
  return ({ transfer, ...data }) => {
    const days = Array.isArray(transfer) ? transfer : [];
    return { ...data, transfer: days.filter(isJsonObject).map(change) };
  };
}

const USAGE_RECORDED: EventKind = {
  version: 2,
  record: true,
  upcasters: [ofEachDay(withNothingReceived)],
  downcasters: [ofEachDay(withoutReceived)],
};

export const usageEventKinds: EventKinds<UsageRecorded> = { UsageRecorded: USAGE_RECORDED };
