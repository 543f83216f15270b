/**
 * The codes of a device login: a user code for people, and a secret for the device's polls.
 *
 * Invariants: every character is drawn without bias. The user code grants nothing: it only has to differ from those
 * of the sessions of the same ten minutes. The secret has 256 random bits.
 */
import { randomBytes, randomInt } from 'node:crypto';

/** No vowels, so that no words appear, and no letter that looks like a digit (RFC 8628, section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const HALF_LENGTH = 4;

/** `WXYZ-1234`. */
export function newUserCode(): string {
  let letters = '';
  while (letters.length < HALF_LENGTH) letters += LETTERS.charAt(randomInt(LETTERS.length));
  const digits = String(randomInt(10 ** HALF_LENGTH)).padStart(HALF_LENGTH, '0');
  return `${letters}-${digits}`;
}

/** 43 characters that need no escaping in a query. */
export function newDeviceSecret(): string {
  return randomBytes(32).toString('base64url');
}
