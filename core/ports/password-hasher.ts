/**
 * Slow hashing of account passwords.
 *
 * Must stay true: the adapter limits how many run at once and how many wait, so that a flood of sign-ins takes bounded
 * memory and leaves processor time for everything else.
 */

export interface PasswordHasher {
  /**
   * Throws `PasswordHasherError` if `hash` and `verify` would. Call it first, so that a flood of passwords costs nothing
   * else.
   */
  expectRoom(): void;
  /** Returns a self-describing hash (PHC string) with a fresh salt. Throws `PasswordHasherError` if too many wait. */
  hash(password: string): Promise<string>;
  /**
   * Returns whether the password has this hash. With null, takes the same time and returns false, so that nobody can
   * tell an account without a password from a wrong password. Throws `PasswordHasherError` if too many wait.
   */
  verify(password: string, hash: string | null): Promise<boolean>;
}

/** So many passwords wait already that this one was not begun. */
export class PasswordHasherError extends Error {
  override readonly name = 'PasswordHasherError';
  readonly code = 'password-hasher-busy';
}
