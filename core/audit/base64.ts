/** Base64 (RFC 4648, section 4, with padding) of bytes in hex, and back: core has no codec of the platform. */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

export function base64OfHex(hex: string): string {
  let text = '';
  for (let at = 0; at < hex.length; at += 6) {
    const group = hex.slice(at, at + 6);
    const bits = Number.parseInt(group.padEnd(6, '0'), 16);
    const digits = [18, 12, 6, 0].map((shift) => DIGITS[Math.trunc(bits / 2 ** shift) % 64]).join('');
    text += group.length === 6 ? digits : group.length === 4 ? `${digits.slice(0, 3)}=` : `${digits.slice(0, 2)}==`;
  }
  return text;
}

/** Throws TypeError for a text that is not base64 in its only form: padded, without bits that no byte needs. */
export function hexOfBase64(text: string): string {
  const digits = text.replace(/={1,2}$/, '');
  let hex = '';
  for (let at = 0; at < digits.length; at += 4) {
    const group = digits.slice(at, at + 4).padEnd(4, 'A');
    let bits = 0;
    for (const digit of group) bits = bits * 64 + DIGITS.indexOf(digit);
    hex += bits.toString(16).padStart(6, '0');
  }
  hex = hex.slice(0, 2 * Math.floor((digits.length * 3) / 4));
  if (base64OfHex(hex) !== text) throw new TypeError('Not base64');
  return hex;
}
