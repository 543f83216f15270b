/**
 * The secret of an exchanged token holds the token's id, since the id comes from the identity token and not from the
 * secret. So one stream of the log is enough to find the token.
 *
 * Must stay true: the form is that of every secret (docs/interface.md, Access tokens). The first 22 of its 40 digits are
 * the id in base62, the other 18 are random: 107 bits, for a token of 15 minutes.
 */
import { parseUuid } from '../kernel/ids.ts';
import type { AccessTokenId } from '../kernel/ids.ts';
import { BASE62 } from './secret.ts';

const ID_DIGITS = 22;
const PREFIX = 'strata_';
/** An id of version 5 (RFC 9562). Of random digits one in 512 looks like this. */
const VERSION_5 = /^.{14}5.{4}[89ab]/;

/** Returns the id as the first digits of a secret. */
export function digitsOfId(id: AccessTokenId): string {
  let rest = BigInt(`0x${id.replaceAll('-', '')}`);
  let digits = '';
  while (digits.length < ID_DIGITS) {
    digits = BASE62.charAt(Number(rest % 62n)) + digits;
    rest /= 62n;
  }
  return digits;
}

/** Returns the id in a secret; null if the secret cannot be that of an exchanged token. */
export function idInSecret(secret: string): AccessTokenId | null {
  let value = 0n;
  for (const digit of secret.slice(PREFIX.length, PREFIX.length + ID_DIGITS)) {
    value = value * 62n + BigInt(BASE62.indexOf(digit));
  }
  const hex = value.toString(16).padStart(32, '0');
  const id = parseUuid<AccessTokenId>(hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'));
  return id !== null && VERSION_5.test(id) ? id : null;
}
