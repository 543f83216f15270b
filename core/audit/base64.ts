/** Hashes in base64 (RFC 4648, section 4), as checkpoints, proofs and exports write them. */
import type { Hash } from '../ports/account-log.ts';

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** A hash has 32 bytes, so its base64 has 43 digits and one sign of padding. */
export function base64OfHex(hash: Hash): string {
  let text = '';
  for (let at = 0; at < hash.length; at += 6) {
    const part = hash.slice(at, at + 6);
    const bits = Number.parseInt(part.padEnd(6, '0'), 16);
    const digits = [18, 12, 6, 0].map((shift) => DIGITS.charAt((bits >> shift) & 63)).join('');
    text += part.length === 6 ? digits : `${digits.slice(0, 3)}=`;
  }
  return text;
}
