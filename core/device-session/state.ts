/** The state of a device login, folded from its stream. */
import type { AccessTokenSettings } from '../access-token/commands.ts';
import type { AccessTokenId, AccountId, Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../kernel/vault-ref.ts';

export interface PendingDeviceSession {
  readonly status: 'pending';
  /** SHA-256 of the secret that the machine's polls carry, hex. */
  readonly secretHash: string;
  readonly userCode: string;
  readonly hostnameRef: VaultRef;
  readonly addressRef: VaultRef | null;
  readonly expiresAt: Timestamp;
}

interface Decided {
  /**
   * The hash that a pending session has. Null if the stream begins with the decision, which does not hold the secret's
   * hash.
   */
  readonly secretHash: string | null;
}

export type GrantedDeviceSession = Decided & {
  readonly status: 'granted';
  readonly expiresAt: Timestamp;
  readonly account: AccountId;
  readonly settings: AccessTokenSettings;
};

/** A poll has claimed the session. Its access token may not exist yet. */
export type ClaimedDeviceSession = Decided & {
  readonly status: 'claimed';
  readonly account: AccountId;
  readonly settings: AccessTokenSettings;
  readonly tokenId: AccessTokenId;
  readonly tokenSecretHash: string;
  readonly tokenPrefix: string;
  readonly claimedAt: Timestamp;
};

export type DeviceSession =
  | { readonly status: 'absent' }
  | PendingDeviceSession
  | GrantedDeviceSession
  | ClaimedDeviceSession
  | (Decided & { readonly status: 'denied'; readonly account: AccountId })
  /** The account that granted it; null if nobody did. */
  | (Decided & { readonly status: 'expired'; readonly account: AccountId | null })
  | (Decided & {
      readonly status: 'closed';
      readonly after: 'claimed' | 'denied' | 'expired';
      readonly account: AccountId | null;
    });

/** Returns true if the session's time is over, whether or not `DeviceLoginExpired` is in the log. */
export function hasExpired(session: { readonly expiresAt: Timestamp }, now: Timestamp): boolean {
  return session.expiresAt <= now;
}

/** Returns the account that granted or denied the session; null if none did. The session's events belong to it. */
export function accountOf(session: DeviceSession): AccountId | null {
  return 'account' in session ? session.account : null;
}
