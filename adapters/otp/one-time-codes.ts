/**
 * One-time codes by otpauth: SHA-1, six digits, 30 seconds, which is what every authenticator app reads.
 *
 * Invariants: the form of a code is checked before otpauth compares it. For six characters that are not six bytes
 * its comparison in constant time throws.
 */
import { Secret, TOTP } from 'otpauth';
import type { OneTimeCodes } from '../../core/ports/one-time-codes.ts';

/** RFC 4226, section 4, recommends 160 bits. */
const SEED_BYTES = 20;
const ALGORITHM = 'SHA1';
const DIGITS = 6;
const PERIOD_SECONDS = 30;
/** How many steps before and after the current one are accepted (RFC 6238, section 5.2). */
const WINDOW_STEPS = 1;
const CODE = /^[0-9]{6}$/;

/** `issuer` is the name under which an app lists the key. */
export function createOneTimeCodes({ issuer }: { readonly issuer: string }): OneTimeCodes {
  return {
    newSeed: () => new Secret({ size: SEED_BYTES }).base32,
    enrolmentUrl: (seed, username) => totp(seed, { issuer, label: username }).toString(),
    stepOf(seed, code, at) {
      if (!CODE.test(code)) return null;
      const timestamp = Date.parse(at);
      const delta = totp(seed).validate({ token: code, timestamp, window: WINDOW_STEPS });
      return delta === null ? null : TOTP.counter({ period: PERIOD_SECONDS, timestamp }) + delta;
    },
  };
}

function totp(seed: string, label: { readonly issuer?: string; readonly label?: string } = {}): TOTP {
  const secret = Secret.fromBase32(seed);
  return new TOTP({ ...label, secret, algorithm: ALGORITHM, digits: DIGITS, period: PERIOD_SECONDS });
}
