/** The state of an account's MFA tokens, folded from the account's stream. */
import { type MfaTokenId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';

/** The time from the beginning of an enrolment, for which the password was asked, to its activation. */
export const MFA_ENROLMENT_SPAN_MS = 60 * 60_000;

interface NamedToken {
  readonly id: MfaTokenId;
  readonly name: string;
  readonly createdAt: Timestamp;
}

interface ActiveToken {
  readonly status: 'active';
  readonly activatedAt: Timestamp;
  /** When a sign-in last used it; null if none has. */
  readonly lastUsedAt: Timestamp | null;
}

export interface PendingTotp extends NamedToken {
  readonly kind: 'totp';
  readonly status: 'pending';
  readonly seedRef: VaultRef;
}

export interface ActiveTotp extends NamedToken, ActiveToken {
  readonly kind: 'totp';
  readonly seedRef: VaultRef;
  /** Codes of this time step and of earlier ones work no more. */
  readonly lastStep: number;
}

export interface PendingPasskey extends NamedToken {
  readonly kind: 'passkey';
  readonly status: 'pending';
}

export interface ActivePasskey extends NamedToken, ActiveToken {
  readonly kind: 'passkey';
  readonly passkeyRef: VaultRef;
  readonly signCount: number;
  /** When the counter first went back; null if it never did. */
  readonly regressedAt: Timestamp | null;
}

export type MfaToken = PendingTotp | ActiveTotp | PendingPasskey | ActivePasskey;

export interface AccountMfa {
  /** In the order of their enrolment; at most `MFA_TOKENS_MAX`. */
  readonly mfaTokens: ReadonlyMap<MfaTokenId, MfaToken>;
  /** Grows with every change of who may enter: a token that became active, was deleted or reset. It ends sessions. */
  readonly mfaChanges: number;
}

/** Returns whether a sign-in on the website needs a second factor. A pending token guards nothing yet. */
export function hasActiveMfaToken({ mfaTokens }: AccountMfa): boolean {
  return [...mfaTokens.values()].some(({ status }) => status === 'active');
}

/** Returns the first moment at which a pending token can be activated no more. */
export function enrolmentEnd({ createdAt }: MfaToken): Timestamp {
  return plusMs(createdAt, MFA_ENROLMENT_SPAN_MS);
}

/** Returns whether the token is pending and can be activated no more. */
export function isEnrolmentOver(token: MfaToken, now: Timestamp): boolean {
  return token.status === 'pending' && now >= enrolmentEnd(token);
}

/** Returns the passkey that is pending and can still be activated; undefined if there is none. */
export function pendingPasskey(tokens: Iterable<MfaToken>, now: Timestamp): MfaToken | undefined {
  return [...tokens].find(
    (token) => token.kind === 'passkey' && token.status === 'pending' && !isEnrolmentOver(token, now),
  );
}

/** Returns the reference of the token's vault record; null if it has none. */
export function vaultRefOf(token: MfaToken): VaultRef | null {
  if (token.kind === 'totp') return token.seedRef;
  return token.status === 'active' ? token.passkeyRef : null;
}
