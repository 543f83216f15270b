/**
 * Secrets of access tokens: `strata_`, 40 base62 digits, 6 of checksum (docs/interface.md, Access tokens).
 *
 * Invariants: every random digit is drawn without bias; the checksum is CRC-32 (IEEE) of the 40 digits, so that a
 * scanner can tell a secret from random text without calling Strata.
 */
import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { digitsOfId, idInSecret } from '../../core/access-token/exchanged-secret.ts';
import { BASE62, checksumOf, SECRET_DIGITS } from '../../core/access-token/secret.ts';
import type { AccessTokenId } from '../../core/kernel/ids.ts';

/** Returns this many random base62 digits. */
export function randomBase62(digits: number): string {
  let text = '';
  while (text.length < digits) text += BASE62.charAt(randomInt(BASE62.length));
  return text;
}

/**
 * Returns a new secret of an access token. It does not look like that of an exchanged one, as one in 512 would: each
 * request with it would look for the other token first.
 */
export function newTokenSecret(): string {
  for (;;) {
    const secret = withForm(randomBase62(SECRET_DIGITS));
    if (idInSecret(secret) === null) return secret;
  }
}

/** Returns a new secret of an exchanged token: the digits of its id, then random ones. */
export function newExchangedSecret(id: AccessTokenId): string {
  const digits = digitsOfId(id);
  return withForm(`${digits}${randomBase62(SECRET_DIGITS - digits.length)}`);
}

function withForm(secret: string): string {
  return `strata_${secret}${checksumOf(crc32, secret)}`;
}
