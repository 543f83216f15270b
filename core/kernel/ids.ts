/**
 * Branded identifiers: a plain string becomes an id only through its parser, where it enters the program.
 *
 * Invariants: a value of a branded type has the canonical form that its parser states. So equal ids are equal
 * strings, and may be used as map keys, stream names and file names without further checks. No other file of the
 * server knows how long an object id is, or what it looks like: test/architecture/lint/object-id-lengths.ts.
 */
import { civilFromDays, daysFromCivil, daysInMonth } from './calendar.ts';

declare const brand: unique symbol;
/** A `Base` that has passed the parser of `Name`. */
export type Brand<Base, Name extends string> = Base & { readonly [brand]: { readonly [N in Name]: true } };

/** A UUID in lower case with dashes (RFC 9562). */
export type Uuid = Brand<string, 'Uuid'>;
export type AccountId = Uuid & Brand<string, 'AccountId'>;
export type RepositoryId = Uuid & Brand<string, 'RepositoryId'>;
export type AccessTokenId = Uuid & Brand<string, 'AccessTokenId'>;
export type WebhookId = Uuid & Brand<string, 'WebhookId'>;
export type WebhookDeliveryId = Uuid & Brand<string, 'WebhookDeliveryId'>;
export type EventId = Uuid & Brand<string, 'EventId'>;
export type DeviceSessionId = Uuid & Brand<string, 'DeviceSessionId'>;
export type MfaTokenId = Uuid & Brand<string, 'MfaTokenId'>;
export type StorageBucketId = Uuid & Brand<string, 'StorageBucketId'>;
export type TrustRuleId = Uuid & Brand<string, 'TrustRuleId'>;
export type LayerId = Uuid & Brand<string, 'LayerId'>;
export type PushId = Uuid & Brand<string, 'PushId'>;

/** A Git object id: `OBJECT_ID_DIGITS` lower-case hex digits. */
export type ObjectId = Brand<string, 'ObjectId'>;

/** An instant in RFC 3339, UTC, with milliseconds and `Z`. Such strings sort in the order of time. */
export type Timestamp = Brand<string, 'Timestamp'>;

/** Bytes of an object id in Git's object format SHA-1 (git-config(1), extensions.objectFormat). */
export const OBJECT_ID_BYTES = 20;
export const OBJECT_ID_DIGITS = 2 * OBJECT_ID_BYTES;
/** The source of a pattern for the text of an object id, to be part of longer patterns. */
export const OBJECT_ID_PATTERN = `[0-9a-f]{${OBJECT_ID_DIGITS}}`;
/** The same for an id as users may write it. */
export const OBJECT_ID_PATTERN_ANY_CASE = `[0-9a-fA-F]{${OBJECT_ID_DIGITS}}`;
/** The same for an id of either object format of Git, SHA-1 and SHA-256: no new branch or tag looks like one. */
export const OBJECT_ID_PATTERN_ANY_FORMAT = `${OBJECT_ID_PATTERN_ANY_CASE}|[0-9a-fA-F]{64}`;

/**
 * Bytes of the checksum at the end of a pack and of an index (gitformat-pack(5)). It has the hash of the object format,
 * as an id has. In hex it is the name of the pack.
 */
export const PACK_CHECKSUM_BYTES = 20;
/** The source of a pattern for a pack's checksum in hex. */
export const PACK_CHECKSUM_PATTERN = `[0-9a-f]{${2 * PACK_CHECKSUM_BYTES}}`;

const OBJECT_ID = new RegExp(`^${OBJECT_ID_PATTERN}$`);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)\.(\d{3})Z$/;
const DAY_MS = 86_400_000;

/** Parses a UUID in either case and returns it in lower case; null for any other text. */
export function parseUuid<Id extends Uuid = Uuid>(text: string): Id | null {
  const lower = text.toLowerCase();
  return UUID.test(lower) ? (lower as Id) : null;
}

/**
 * Parses like `parseUuid`, for text from Strata's own records: throws TypeError, because any other text there is
 * corruption.
 */
export function uuid<Id extends Uuid = Uuid>(text: string): Id {
  const id = parseUuid<Id>(text);
  if (id === null) throw new TypeError(`Not a UUID: ${JSON.stringify(text)}`);
  return id;
}

/** Parses a full object id in lower case; null for abbreviations, upper case and any other text. */
export function parseObjectId(text: string): ObjectId | null {
  return OBJECT_ID.test(text) ? (text as ObjectId) : null;
}

/** Parses like `parseObjectId`, for text from git or from Strata's own records: throws TypeError for any other text. */
export function objectId(text: string): ObjectId {
  const id = parseObjectId(text);
  if (id === null) throw new TypeError(`Not a full object id: ${JSON.stringify(text)}`);
  return id;
}

/** The id that means "no object" in Git's protocol: gitprotocol-pack(5). */
export const ZERO_OBJECT_ID = '0'.repeat(OBJECT_ID_DIGITS) as ObjectId;
/** Git knows the empty tree even where no pack has it. */
export const EMPTY_TREE_ID = objectId('4b825dc642cb6eb9a060e54bf8d69288fbee4904');
export const EMPTY_BLOB_ID = objectId('e69de29bb2d1d6434b8b29ae775ad8c2e48c5391');

/** Parses an instant in exactly the form of `Timestamp`; null for any other text, and for days that do not exist. */
export function parseTimestamp(text: string): Timestamp | null {
  const [, year = 0, month = 0, day = 0] = TIMESTAMP.exec(text)?.map(Number) ?? [];
  return year >= 1 && day >= 1 && day <= daysInMonth(year, month) ? (text as Timestamp) : null;
}

/** Parses like `parseTimestamp`, for text from Strata's own records or clock: throws TypeError for any other text. */
export function timestamp(text: string): Timestamp {
  const at = parseTimestamp(text);
  if (at === null) throw new TypeError(`Not a timestamp: ${JSON.stringify(text)}`);
  return at;
}

/** Returns the later of two instants. */
export function later(a: Timestamp, b: Timestamp | null): Timestamp {
  return b !== null && b > a ? b : a;
}

/**
 * Returns the instant `spanMs` whole milliseconds after another; earlier if negative. TypeError outside years 1 to
 * 9999.
 */
export function plusMs(at: Timestamp, spanMs: number): Timestamp {
  const day = { year: Number(at.slice(0, 4)), month: Number(at.slice(5, 7)), day: Number(at.slice(8, 10)) };
  const [hours, minutes, ms] = [Number(at.slice(11, 13)), Number(at.slice(14, 16)), Number(at.slice(17, 23)) * 1_000];
  const sinceMidnightMs = (hours * 60 + minutes) * 60_000 + Math.round(ms) + spanMs;
  const movedDays = Math.floor(sinceMidnightMs / DAY_MS);
  const date = civilFromDays(daysFromCivil(day) + movedDays);
  const restMs = sinceMidnightMs - movedDays * DAY_MS;
  const time = [Math.floor(restMs / 3_600_000), Math.floor(restMs / 60_000) % 60, Math.floor(restMs / 1_000) % 60];
  const clock = time.map((part) => padded(part, 2)).join(':');
  const days = `${padded(date.year, 4)}-${padded(date.month, 2)}-${padded(date.day, 2)}`;
  return timestamp(`${days}T${clock}.${padded(restMs % 1_000, 3)}Z`);
}

/** Returns the milliseconds from one instant to another; negative if the other is earlier. */
export function msBetween(from: Timestamp, to: Timestamp): number {
  return sinceEpochMs(to) - sinceEpochMs(from);
}

function sinceEpochMs(at: Timestamp): number {
  const day = { year: Number(at.slice(0, 4)), month: Number(at.slice(5, 7)), day: Number(at.slice(8, 10)) };
  const minutes = Number(at.slice(11, 13)) * 60 + Number(at.slice(14, 16));
  return daysFromCivil(day) * DAY_MS + minutes * 60_000 + Math.round(Number(at.slice(17, 23)) * 1_000);
}

function padded(value: number, digits: number): string {
  return String(value).padStart(digits, '0');
}

/** Ids that follow from names (RFC 9562, version 5): the platform computes them. */
export interface DerivedIds {
  /** Returns the UUID v5 of a name in a namespace: the same input always gives the same id. */
  derive<Id extends Uuid>(namespace: Uuid, name: string): Id;
}
