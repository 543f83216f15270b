/**
 * Events of a device login, on `deviceSession-<id>`: a machine without a browser asks, a signed-in user decides,
 * and the machine fetches its access token.
 *
 * Must stay true: no secret is in them. What the machine says of itself, before anybody vouches for it, stands in the
 * vault under a key of the session's own, which is destroyed when the session ends. The session's times are data, so
 * that whoever reads the stream knows without any timer whether it still may be granted or claimed.
 */
import type { Grant, Scope } from '../kernel/grants.ts';
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';

export type DeviceLoginRequested = DomainEvent<
  'DeviceLoginRequested',
  {
    /** What the user compares with the machine's screen: `WXYZ-1234`. It opens nothing. */
    readonly user_code: string;
    /** SHA-256 of the secret that polls carry, hex. */
    readonly secret_hash: string;
    /** References into the session's own vault records; of the address null where it is not known. */
    readonly hostname_ref: string;
    readonly address_ref: string | null;
    readonly expires_at: string;
  }
>;

/** The user's choices for the token to come. */
export type DeviceLoginGranted = DomainEvent<
  'DeviceLoginGranted',
  {
    readonly account: string;
    readonly name: string;
    readonly scope: Scope;
    readonly grants: readonly Grant[];
    readonly repository_ids: readonly string[];
    /** The token's, or null for one that never expires. */
    readonly expires_at: string | null;
  }
>;

export type DeviceLoginDenied = DomainEvent<'DeviceLoginDenied', { readonly account: string }>;

/** Its time ran out, granted or not. */
export type DeviceLoginExpired = DomainEvent<'DeviceLoginExpired', Record<never, never>>;

/** One poll won: it alone has the token's secret. `AccessTokenCreated` follows with this id. */
export type DeviceLoginClaimed = DomainEvent<
  'DeviceLoginClaimed',
  { readonly token_id: string; readonly secret_hash: string; readonly token_prefix: string }
>;

/** All that follows the session's end is done: its token exists, and its vault records are destroyed. */
export type DeviceLoginClosed = DomainEvent<'DeviceLoginClosed', Record<never, never>>;

export type DeviceSessionEvent =
  | DeviceLoginRequested
  | DeviceLoginGranted
  | DeviceLoginDenied
  | DeviceLoginExpired
  | DeviceLoginClaimed
  | DeviceLoginClosed;

export const deviceSessionEventKinds: EventKinds<DeviceSessionEvent> = {
  DeviceLoginRequested: RECORD_V1,
  DeviceLoginGranted: RECORD_V1,
  DeviceLoginDenied: RECORD_V1,
  DeviceLoginExpired: RECORD_V1,
  DeviceLoginClaimed: RECORD_V1,
  DeviceLoginClosed: RECORD_V1,
};
