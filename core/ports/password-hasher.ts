/** Slow hashing of account passwords. */

export interface PasswordHasher {
  /** A self-describing hash (PHC string) with a fresh salt. */
  hash(password: string): Promise<string>;
  /** Whether the password has this hash; bounded in concurrency. */
  verify(password: string, hash: string): Promise<boolean>;
}
