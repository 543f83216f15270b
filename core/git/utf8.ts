/**
 * UTF-8 as Git's protocol needs it: encoding, decoding, and a string's byte length and byte order without encoding it.
 *
 * Invariants: for well-formed strings, length and order agree with `TextEncoder`. A lone surrogate counts three
 * bytes, like the U+FFFD that the encoder writes for it; its order is unspecified.
 */

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenientDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Encodes a text as UTF-8. */
export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Decodes UTF-8; null if the bytes are not UTF-8. Keeps a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return strictDecoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** Returns whether a stream of bytes is text: UTF-8 without NUL. Stops reading at the first chunk that is not. */
export async function isUtf8Text(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<boolean> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const isValid = (decode: () => string): boolean => {
    try {
      decode();
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false;
      throw error;
    }
  };
  for await (const chunk of chunks) {
    if (chunk.includes(0) || !isValid(() => decoder.decode(chunk, { stream: true }))) return false;
  }
  // Fails if the last chunk ends within a character.
  return isValid(() => decoder.decode());
}

/**
 * Decodes like `decodeUtf8`, but replaces each broken sequence by U+FFFD: for texts that are only displayed or
 * compared.
 */
export function decodeUtf8Lossy(bytes: Uint8Array): string {
  return lenientDecoder.decode(bytes);
}

/** Returns how many bytes the text takes in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // A surrogate pair has two code units and four bytes, so each half adds one byte to its code unit.
    bytes += unit < 0x800 || isPaired(text, at, unit) ? 1 : 2;
  }
  return bytes;
}

function isPaired(text: string, at: number, unit: number): boolean {
  if (unit >= 0xd800 && unit < 0xdc00) return isBetween(text.charCodeAt(at + 1), 0xdc00, 0xdfff);
  if (unit >= 0xdc00 && unit < 0xe000) return isBetween(text.charCodeAt(at - 1), 0xd800, 0xdbff);
  return false;
}

/** Returns false for NaN, which `charCodeAt` returns past either end of the text. */
function isBetween(unit: number, first: number, last: number): boolean {
  return unit >= first && unit <= last;
}

/**
 * Returns a rank of a UTF-16 code unit that orders strings like their UTF-8 bytes. Surrogates encode U+10000 and above,
 * so they sort after U+E000 to U+FFFF (Unicode, section 5.17).
 */
export function byteOrderRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Compares two well-formed texts by the bytes of their UTF-8: returns a negative number, zero or a positive one. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return byteOrderRank(left) - byteOrderRank(right);
  }
  return a.length - b.length;
}

/** A code unit from the first surrogate on: those below are in the order of their UTF-8. */
const NOT_IN_UTF8_ORDER = /[\ud800-\uffff]/;

/** Returns a copy of well-formed texts, sorted as `compareUtf8` compares them, and mostly much faster. */
export function sortUtf8<Text extends string>(texts: readonly Text[]): Text[] {
  // Without a function, `sort` compares code units.
  return texts.some((text) => NOT_IN_UTF8_ORDER.test(text)) ? texts.toSorted(compareUtf8) : texts.toSorted();
}
