/**
 * The sessions of browsers: who signed in, and who still has to present a second factor.
 *
 * Invariants: only a digest of a session's id is stored, so that who reads the store cannot take a session over.
 * There is a session only for somebody who presented the right password. Sessions are not in the log, so a rebuild
 * loses none, and the loss of the store only signs everybody out.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../kernel/vault-ref.ts';

export interface StoredSession {
  /** SHA-256 of the id that the browser sends, hex. */
  readonly idHash: string;
  /** A UUID that names the session in lists; it lets nobody in. */
  readonly handle: string;
  readonly account: AccountId;
  /** The account's session epoch when the session began. A session of another epoch is not valid. */
  readonly epoch: number;
  /** `pending`: the password was right, and the second factor is missing. */
  readonly status: 'signed-in' | 'pending';
  /** Short texts that steps of a sign-in keep for the next step. */
  readonly kept: Readonly<Record<string, string>>;
  readonly createdAt: Timestamp;
  readonly seenAt: Timestamp;
  /** From this time on the session is not valid. */
  readonly expiresAt: Timestamp;
  /** Vault references of the account: the address and the browser that the session was last seen with. */
  readonly addressRef: VaultRef | null;
  readonly agentRef: VaultRef | null;
}

export interface SessionStore {
  /**
   * Stores a new session. Then removes the account's oldest sessions of the same status beyond `SESSIONS_MAX` or
   * `PENDING_SIGN_INS_MAX`.
   */
  add(session: StoredSession): Promise<void>;
  /** Replaces the texts that a session keeps. Neither this nor `noteSeen` brings a removed session back. */
  keep(idHash: string, kept: StoredSession['kept']): Promise<void>;
  /** Replaces when, where and with what a session was seen, and when it expires. */
  noteSeen(session: Omit<StoredSession, 'kept'>): Promise<void>;
  /** Returns the session, or null if there is none or it has expired. */
  find(idHash: string, now: Timestamp): Promise<StoredSession | null>;
  remove(idHash: string): Promise<void>;
  /** Returns the account's sessions that somebody signed in to and that have not expired, last seen first. */
  list(account: AccountId, now: Timestamp): Promise<readonly StoredSession[]>;
  /** Removes the account's session with this handle. Returns whether there was one. */
  revoke(account: AccountId, handle: string): Promise<boolean>;
  /** Removes all sessions of the account but the one with this handle. Returns the handles of those it removed. */
  revokeOthers(account: AccountId, handle: string): Promise<readonly string[]>;
  /** Removes every session of an erased account. */
  forgetAccount(account: AccountId): Promise<void>;
  /** Removes at most `limit` expired sessions. Returns how many it removed. */
  removeExpired(now: Timestamp, limit: number): Promise<number>;
}

/** The store cannot be reached. Every call may be repeated. */
export class SessionStoreError extends CodedError<'session-store-unavailable'> {
  override readonly name = 'SessionStoreError';
}
