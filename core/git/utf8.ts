/**
 * What Git needs to know of a string's UTF-8 form, without encoding it: its length, its place in byte order.
 *
 * Must stay true: for well-formed strings both agree with `TextEncoder`. Lone surrogates count as the three bytes
 * of U+FFFD that the encoder would write, and their order is unspecified.
 */

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenientDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The bytes of a text in UTF-8. */
export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The text of bytes in UTF-8; null when they are not UTF-8. A byte order mark stays. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return strictDecoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** As `decodeUtf8`, each broken sequence replaced by U+FFFD: for texts that are only shown. */
export function decodeUtf8Lossy(bytes: Uint8Array): string {
  return lenientDecoder.decode(bytes);
}

/** How many bytes the text takes in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes, so each half adds one.
    bytes += unit < 0x800 || isPaired(text, at, unit) ? 1 : 2;
  }
  return bytes;
}

function isPaired(text: string, at: number, unit: number): boolean {
  if (unit >= 0xd800 && unit < 0xdc00) return isBetween(text.charCodeAt(at + 1), 0xdc00, 0xdfff);
  if (unit >= 0xdc00 && unit < 0xe000) return isBetween(text.charCodeAt(at - 1), 0xd800, 0xdbff);
  return false;
}

/** False for NaN, which `charCodeAt` answers past either end. */
function isBetween(unit: number, first: number, last: number): boolean {
  return unit >= first && unit <= last;
}

/**
 * A rank of UTF-16 code units that orders strings as their UTF-8 bytes: surrogates stand for U+10000 and above,
 * so they come after U+E000 to U+FFFF (Unicode, section 5.17).
 */
export function byteOrderRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Compares two well-formed texts by the bytes of their UTF-8 form: negative, zero or positive. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return byteOrderRank(left) - byteOrderRank(right);
  }
  return a.length - b.length;
}
