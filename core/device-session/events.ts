/**
 * Events of a device login, on `deviceSession-<id>`. A machine without a browser requests a login, a signed-in user
 * grants or denies it, and the machine fetches its access token. A stream begins with the decision, which holds the
 * facts of the request that are kept. Older streams begin with the request, and are still read.
 *
 * Invariants: the events hold no secret. What the machine said about itself is in the vault of the account that
 * decided; in older streams, under a key of the session's own that is destroyed when the session ends. The session's
 * times are in the events, so a reader of the stream needs no timer to know whether the session may still be claimed.
 */
import { type DomainEvent, type EventKind, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';
import type { Grant, Scope } from '../kernel/grants.ts';

/** Only older streams have it: a request is an operational row now (core/ports/device-login-requests.ts). */
export type DeviceLoginRequested = DomainEvent<
  'DeviceLoginRequested',
  {
    /** Such as `WXYZ-1234`. The user compares it with the machine's screen. It gives access to nothing. */
    readonly user_code: string;
    /** SHA-256 of the secret that the machine's polls carry, hex. */
    readonly secret_hash: string;
    /** References to vault records of the session itself. The address is null if it is not known. */
    readonly hostname_ref: string;
    readonly address_ref: string | null;
    readonly expires_at: string;
  }
>;

/** The request's facts, in a stream that begins with the decision. Null in a stream with `DeviceLoginRequested`. */
export type DecidedRequest = {
  readonly requested_at: string;
  /** RFC 3339: when the session expires. */
  readonly session_expires_at: string;
  /** References to vault records of the account. The address is null if it is not known. */
  readonly hostname_ref: string;
  readonly address_ref: string | null;
};

/** Holds the user's choices for the token that the machine will get. */
export type DeviceLoginGranted = DomainEvent<
  'DeviceLoginGranted',
  {
    readonly account: string;
    readonly name: string;
    readonly scope: Scope;
    readonly grants: readonly Grant[];
    readonly repository_ids: readonly string[];
    /** When the token expires, or null for a token that never does. */
    readonly expires_at: string | null;
    readonly request: DecidedRequest | null;
  }
>;

export type DeviceLoginDenied = DomainEvent<
  'DeviceLoginDenied',
  { readonly account: string; readonly request: DecidedRequest | null }
>;

/** The session expired before it was claimed, whether or not it was granted. */
export type DeviceLoginExpired = DomainEvent<'DeviceLoginExpired', Record<never, never>>;

/** One poll claimed the token, and only that poll has its secret. `AccessTokenCreated` follows with this id. */
export type DeviceLoginClaimed = DomainEvent<
  'DeviceLoginClaimed',
  { readonly token_id: string; readonly secret_hash: string; readonly token_prefix: string }
>;

/**
 * Every step after the session's end is done: a claimed token exists, and the session's vault records are destroyed.
 */
export type DeviceLoginClosed = DomainEvent<'DeviceLoginClosed', Record<never, never>>;

export type DeviceSessionEvent =
  | DeviceLoginRequested
  | DeviceLoginGranted
  | DeviceLoginDenied
  | DeviceLoginExpired
  | DeviceLoginClaimed
  | DeviceLoginClosed;

/** In version 1 every stream began with the request. */
const DECISION: EventKind = { version: 2, record: true, upcasters: [(data) => ({ ...data, request: null })] };

export const deviceSessionEventKinds: EventKinds<DeviceSessionEvent> = {
  DeviceLoginRequested: RECORD_V1,
  DeviceLoginGranted: DECISION,
  DeviceLoginDenied: DECISION,
  DeviceLoginExpired: RECORD_V1,
  DeviceLoginClaimed: RECORD_V1,
  DeviceLoginClosed: RECORD_V1,
};
