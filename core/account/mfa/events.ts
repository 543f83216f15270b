/**
 * Events of an account's MFA tokens, on `account-<id>`. An MFA token is the second factor of a sign-in on the website:
 * a TOTP key in an authenticator app, or a passkey. It is enrolled as pending and becomes active once its owner has
 * shown that it works.
 *
 * Invariants: no event holds a seed, a public key or a credential id. They are in the vault, because the first is a
 * secret and the others name a person's device (docs/architecture.md, invariant 5). Names are labels, as those of
 * access tokens are. A code works once because its use is an event: the append expects the revision it was decided at.
 */
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../../kernel/decider.ts';

export type TotpEnrolmentBegun = DomainEvent<
  'TotpEnrolmentBegun',
  {
    readonly token_id: string;
    readonly name: string;
    /** A vault reference. */
    readonly seed_ref: string;
  }
>;
/** The owner entered a code of the token. `step` is the code's time step (RFC 6238), which no later code may have. */
export type TotpActivated = DomainEvent<'TotpActivated', { readonly token_id: string; readonly step: number }>;
/** A sign-in used the code of this step. Codes of this step and of earlier ones work no more. */
export type TotpCodeUsed = DomainEvent<'TotpCodeUsed', { readonly token_id: string; readonly step: number }>;

export type PasskeyEnrolmentBegun = DomainEvent<
  'PasskeyEnrolmentBegun',
  { readonly token_id: string; readonly name: string }
>;
export type PasskeyActivated = DomainEvent<
  'PasskeyActivated',
  {
    readonly token_id: string;
    /** A vault reference to the credential's id and public key. */
    readonly passkey_ref: string;
    /** The authenticator's signature counter; 0 for authenticators without one. */
    readonly sign_count: number;
  }
>;
export type PasskeyUsed = DomainEvent<'PasskeyUsed', { readonly token_id: string; readonly sign_count: number }>;
/** A signature was valid, but its counter was not above the recorded one: the passkey may have been copied. */
export type PasskeyCounterRegressed = DomainEvent<
  'PasskeyCounterRegressed',
  { readonly token_id: string; readonly sign_count: number; readonly recorded_sign_count: number }
>;

export type MfaTokenRenamed = DomainEvent<'MfaTokenRenamed', { readonly token_id: string; readonly name: string }>;
export type MfaTokenDeleted = DomainEvent<
  'MfaTokenDeleted',
  {
    readonly token_id: string;
    /** The vault record that is removed after this event. Null for a pending passkey, which has none. */
    readonly removed_ref: string | null;
  }
>;
/** An operator removed all MFA tokens of an account whose owner could not sign in. */
export type MfaReset = DomainEvent<
  'MfaReset',
  {
    readonly token_ids: readonly string[];
    /** The vault records that are removed after this event. */
    readonly removed_refs: readonly string[];
  }
>;

export type MfaEvent =
  | TotpEnrolmentBegun
  | TotpActivated
  | TotpCodeUsed
  | PasskeyEnrolmentBegun
  | PasskeyActivated
  | PasskeyUsed
  | PasskeyCounterRegressed
  | MfaTokenRenamed
  | MfaTokenDeleted
  | MfaReset;

export const mfaEventKinds: EventKinds<MfaEvent> = {
  TotpEnrolmentBegun: RECORD_V1,
  TotpActivated: RECORD_V1,
  TotpCodeUsed: RECORD_V1,
  PasskeyEnrolmentBegun: RECORD_V1,
  PasskeyActivated: RECORD_V1,
  PasskeyUsed: RECORD_V1,
  PasskeyCounterRegressed: RECORD_V1,
  MfaTokenRenamed: RECORD_V1,
  MfaTokenDeleted: RECORD_V1,
  MfaReset: RECORD_V1,
};
