/**
 * Slow hashing of account passwords.
 *
 * Invariants: the adapter limits how many run at the same time and how many wait, so that a flood of sign-ins takes
 * bounded memory and leaves processor time for everything else. Those who wait take turns:
 * a flood from one address, or from a thousand, does not keep everybody else out.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId } from '../kernel/ids.ts';

/** For whom a password is hashed, which decides whose turn is next. */
export type PasswordTurn =
  /** Somebody who is signed in to the account, or whose browser was before. */
  | { readonly kind: 'known'; readonly account: AccountId }
  /** `address` is empty if it is not known. */
  | { readonly kind: 'stranger'; readonly address: string };

export interface PasswordHasher {
  /**
   * Throws `PasswordHasherError` if `hash` and `verify` would, as things are. Call it first, so that a flood of
   * passwords costs nothing else. Who is refused and comes again soon has the place of the first time.
   */
  expectRoom(turn: PasswordTurn): void;
  /** Returns a self-describing hash (PHC string) with a fresh salt. Throws `PasswordHasherError` if too many wait. */
  hash(password: string, turn: PasswordTurn): Promise<string>;
  /**
   * Returns whether the password has this hash. With null, takes the same time and returns false, so that nobody can
   * tell an account without a password from a wrong password. Throws `PasswordHasherError` if too many wait.
   */
  verify(password: string, hash: string | null, turn: PasswordTurn): Promise<boolean>;
}

/** Too many passwords wait: this one was not begun, or gave way to one of somebody who had tried less. */
export class PasswordHasherError extends CodedError<'password-hasher-busy'> {
  override readonly name = 'PasswordHasherError';
}
