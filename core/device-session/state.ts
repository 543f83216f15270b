/** A device login as its stream says. */
import type { AccessTokenSettings } from '../access-token/commands.ts';
import type { AccessTokenId, AccountId, Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../ports/vault.ts';

interface Requested {
  /** SHA-256 of the secret that polls carry, hex. */
  readonly secretHash: string;
}

interface Waiting extends Requested {
  readonly userCode: string;
  readonly hostnameRef: VaultRef;
  readonly addressRef: VaultRef | null;
  readonly expiresAt: Timestamp;
}

export type PendingDeviceSession = Waiting & { readonly status: 'pending' };

export type GrantedDeviceSession = Waiting & {
  readonly status: 'granted';
  readonly account: AccountId;
  readonly settings: AccessTokenSettings;
};

/** Claimed, and perhaps not followed by its token yet. */
export type ClaimedDeviceSession = Requested & {
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
  | (Requested & { readonly status: 'denied'; readonly account: AccountId })
  /** The account is that of its grant; null where nobody granted it. */
  | (Requested & { readonly status: 'expired'; readonly account: AccountId | null })
  | (Requested & {
      readonly status: 'closed';
      readonly after: 'claimed' | 'denied' | 'expired';
      readonly account: AccountId | null;
    });

/** Whether the session's time is over, whatever events say so yet. */
export function hasExpired(session: { readonly expiresAt: Timestamp }, now: Timestamp): boolean {
  return session.expiresAt <= now;
}

/** The account that a session's events belong to; null while nobody has taken it on. */
export function accountOf(session: DeviceSession): AccountId | null {
  return 'account' in session ? session.account : null;
}
