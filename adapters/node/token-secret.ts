/**
 * Secrets of access tokens: `strata_`, 40 base62 digits, 6 of checksum (docs/interface.md, Access tokens).
 *
 * Must stay true: every digit is drawn without bias; the checksum is CRC-32 (IEEE) of the 40 digits, so that a scanner
 * can tell a secret from random text without calling Strata.
 */
import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { BASE62, checksumOf, SECRET_DIGITS } from '../../core/access-token/secret.ts';

/** Returns this many random base62 digits. */
export function randomBase62(digits: number): string {
  let text = '';
  while (text.length < digits) text += BASE62.charAt(randomInt(BASE62.length));
  return text;
}

export function newTokenSecret(): string {
  const secret = randomBase62(SECRET_DIGITS);
  return `strata_${secret}${checksumOf(crc32, secret)}`;
}
