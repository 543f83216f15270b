/**
 * Passkeys (Web Authentication, https://www.w3.org/TR/webauthn-3/): what a browser is asked for, and the check of what
 * it answers.
 *
 * Invariants: an answer is accepted only if the authenticator verified its user, and signed for the website's own
 * origin and relying party id. The caller makes sure that a challenge is answered once, and compares the counters.
 */
import type { AccountId } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';

/** A credential that an authenticator made for one account. Both members are base64url. */
export interface Passkey {
  readonly credentialId: string;
  /** In COSE form. */
  readonly publicKey: string;
}

/** What a browser is asked to do. `options` is the JSON form that the standard gives them. */
export interface PasskeyPrompt {
  /** Random, base64url. The answer must sign it. */
  readonly challenge: string;
  readonly options: JsonObject;
}

/** A browser's answer in a form that can be checked. */
export interface PasskeyAnswer {
  /** The challenge that the answer says it signed. Nothing has been verified yet. */
  readonly challenge: string;
  readonly credentialId: string;
  /** The account that the authenticator keeps with a credential, if it told. Not verified either. */
  readonly account: string | null;
  /** The whole answer, in the JSON form that the standard gives it. */
  readonly json: JsonObject;
}

export interface Passkeys {
  /**
   * False if browsers offer no passkeys at the website's address: it is an IP address, or plain HTTP beyond localhost.
   */
  readonly available: boolean;
  /** Asks for a new credential that is not in `known`. */
  creationPrompt(
    owner: { readonly account: AccountId; readonly username: string },
    known: readonly Passkey[],
  ): Promise<PasskeyPrompt>;
  /** Asks for a signature of one of these credentials. */
  signaturePrompt(known: readonly Passkey[]): Promise<PasskeyPrompt>;
  /** Returns null for text that is no answer, and for one that is longer than an answer may be. */
  parseAnswer(text: string): PasskeyAnswer | null;
  /** Resolves to the new credential, with its counter; null if the answer does not hold. */
  verifyCreation(
    answer: PasskeyAnswer,
    challenge: string,
  ): Promise<{ readonly passkey: Passkey; readonly signCount: number } | null>;
  /** Resolves to the authenticator's counter; null if the answer is not a signature of this credential. */
  verifySignature(
    answer: PasskeyAnswer,
    challenge: string,
    passkey: Passkey,
  ): Promise<{ readonly signCount: number } | null>;
}
