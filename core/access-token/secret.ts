/**
 * The form of a token's secret: `strata_`, 40 base62 digits, 6 of checksum (docs/interface.md, Access tokens).
 *
 * Invariants: text without the right checksum is refused before anything is read for it.
 */

export const SECRET_START = 'strata_';
export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
export const SECRET_DIGITS = 40;
const CHECKSUM_DIGITS = 6;
const SECRET = /^strata_([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/;

type Crc32 = (text: string) => number;

/** The CRC-32 of the 40 digits in base62, padded on the left with `0` to 6. */
export function checksumOf(crc32: Crc32, secret: string): string {
  let rest = crc32(secret);
  let digits = '';
  while (rest > 0) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits.padStart(CHECKSUM_DIGITS, '0');
}

/** Whether the text can be a secret: whoever has none must at least compute a checksum. */
export function isSecretForm(crc32: Crc32, text: string): boolean {
  const [, secret, checksum] = SECRET.exec(text) ?? [];
  return secret !== undefined && checksumOf(crc32, secret) === checksum;
}
