/**
 * The challenges that browsers were given and have not answered yet.
 *
 * Invariants: `take` returns true at most once for a challenge, on whatever nodes it races. An account has at most
 * `PASSKEY_CHALLENGES_MAX` of them: a new one replaces the oldest.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, Timestamp } from '../kernel/ids.ts';

export interface PasskeyChallenge {
  readonly account: AccountId;
  /** What the answer is for: `sign-in`, or the id of the token that it activates. */
  readonly purpose: string;
  readonly challenge: string;
}

export interface PasskeyChallenges {
  /** Keeps a challenge until `expiresAt`, and removes those of any account that expired before `now`. */
  put(challenge: PasskeyChallenge, times: { readonly now: Timestamp; readonly expiresAt: Timestamp }): Promise<void>;
  /** Removes the challenge. Resolves true if it was there for this purpose and has not expired. */
  take(challenge: PasskeyChallenge, now: Timestamp): Promise<boolean>;
  /** Removes every challenge of an erased account. */
  forgetAccount(account: AccountId): Promise<void>;
}

/** The challenges could not be reached. */
export class PasskeyChallengesError extends CodedError<'passkey-challenges-unavailable'> {
  override readonly name = 'PasskeyChallengesError';
}
