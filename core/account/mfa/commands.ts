/** The commands of an account's MFA tokens. */
import type { MfaTokenId, Timestamp } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';

/** What the owner of an open account does with the account's MFA tokens. */
export type MfaCommand =
  | {
      readonly type: 'BeginTotpEnrolment';
      readonly id: MfaTokenId;
      readonly name: string;
      readonly seedRef: VaultRef;
    }
  /** `step` is the time step whose code the owner entered. */
  | { readonly type: 'ActivateTotp'; readonly id: MfaTokenId; readonly step: number; readonly now: Timestamp }
  | {
      readonly type: 'BeginPasskeyEnrolment';
      readonly id: MfaTokenId;
      readonly name: string;
      readonly now: Timestamp;
    }
  | {
      readonly type: 'ActivatePasskey';
      readonly id: MfaTokenId;
      readonly passkeyRef: VaultRef;
      readonly signCount: number;
      readonly now: Timestamp;
    }
  | { readonly type: 'RenameMfaToken'; readonly id: MfaTokenId; readonly name: string }
  | { readonly type: 'DeleteMfaToken'; readonly id: MfaTokenId };

/** A second factor that was checked at a sign-in, to be used up. Its owner may also sign in to a closed account. */
export type SecondFactorCommand =
  | { readonly type: 'UseTotpCode'; readonly id: MfaTokenId; readonly step: number }
  | { readonly type: 'UsePasskey'; readonly id: MfaTokenId; readonly signCount: number };
