/** Time-based one-time codes, TOTP (RFC 6238), as authenticator apps show them: six digits, a new code every 30 s. */
import type { Timestamp } from '../kernel/ids.ts';

export interface OneTimeCodes {
  /** Returns a new random key, 160 bits in base32, as people type it into an app. */
  newSeed(): string;
  /** Returns the `otpauth:` URL of a key, which an app reads from a QR code. */
  enrolmentUrl(seed: string, username: string): string;
  /**
   * Returns the time step whose code this is: that of `at`, the one before or the one after it, because a clock may be
   * off and a person is slow. Null for any other text, whatever its form.
   */
  stepOf(seed: string, code: string, at: Timestamp): number | null;
}
