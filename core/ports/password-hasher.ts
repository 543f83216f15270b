/** Slow hashing of account passwords. */

export interface PasswordHasher {
  /** Returns a self-describing hash (PHC string) with a fresh salt. */
  hash(password: string): Promise<string>;
  /** Returns whether the password has this hash. The adapter limits how many run at once. */
  verify(password: string, hash: string): Promise<boolean>;
}
