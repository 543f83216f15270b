/**
 * The secret of an exchanged token holds the token's id, since the id comes from the identity token and not from the
 * secret. So one stream of the log is enough to find the token.
 *
 * Invariants: the form is that of every secret (docs/interface.md, Access tokens). The first 22 of its 40 digits are
 * the id in base62, the other 18 are random: 107 bits, for a token of 15 minutes.
 */
import type { AccessTokenId } from '../kernel/ids.ts';
import { parseUuid } from '../kernel/ids.ts';
import { BASE62 } from './secret.ts';

const ID_DIGITS = 22;
const PREFIX = 'strata_';
/** What eight digits further left is worth. */
const WEIGHT = 62n ** 8n;
/** The version and the variant of an id (RFC 9562). Of random digits one in 512 is such an id. */
const VERSION_5 = 5n;
const VARIANT = 2n;

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
  // Every request comes here, so the digits are read in three numbers: a bigint for each digit would cost ten times
  // that.
  const [high, middle, low] = [numberAt(secret, 0, 6), numberAt(secret, 6, 14), numberAt(secret, 14, ID_DIGITS)];
  const value = (BigInt(high) * WEIGHT + BigInt(middle)) * WEIGHT + BigInt(low);
  if (((value >> 76n) & 0xfn) !== VERSION_5 || ((value >> 62n) & 0x3n) !== VARIANT) return null;
  const hex = value.toString(16).padStart(32, '0');
  return parseUuid<AccessTokenId>(hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'));
}

/** The value of these digits of a secret; eight of them stay below 2^53. */
function numberAt(secret: string, from: number, to: number): number {
  let value = 0;
  for (let at = PREFIX.length + from; at < PREFIX.length + to; at += 1) {
    value = value * BASE62.length + BASE62.indexOf(secret.charAt(at));
  }
  return value;
}
