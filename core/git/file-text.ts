/**
 * The text of a file for people: git does not say in which encoding a file is.
 *
 * Invariants: a byte order mark decides, and UTF-8 is never a guess. A guess is made only where the bytes look like the
 * letters of a Western European text: what may be Cyrillic, Japanese or Polish is no text here rather than a wrong one.
 */
import { decodeUtf8 } from './utf8.ts';

export type FileEncoding = 'UTF-8' | 'UTF-16LE' | 'UTF-16BE' | 'Windows-1252';

export interface FileText {
  readonly text: string;
  /** Windows-1252, of which Latin-1 is a part, is a guess. */
  readonly encoding: FileEncoding;
}

const MARKS = [
  { encoding: 'UTF-16LE', first: 0xff, second: 0xfe },
  { encoding: 'UTF-16BE', first: 0xfe, second: 0xff },
] as const;

/** Returns null for bytes that are not text, or whose encoding nothing says. */
export function fileText(bytes: Uint8Array): FileText | null {
  const mark = MARKS.find(({ first, second }) => bytes[0] === first && bytes[1] === second);
  if (mark !== undefined) {
    const text = decodeMarked(mark.encoding, bytes);
    return text === null || text.includes('\0') ? null : { text, encoding: mark.encoding };
  }
  if (bytes.includes(0)) return null;
  const text = decodeUtf8(bytes);
  if (text !== null) return { text, encoding: 'UTF-8' };
  return looksWestern(bytes) ? { text: decodeWestern(bytes), encoding: 'Windows-1252' } : null;
}

function decodeMarked(encoding: FileEncoding, bytes: Uint8Array): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

function decodeWestern(bytes: Uint8Array): string {
  return new TextDecoder('windows-1252').decode(bytes);
}

/** No character of Windows-1252. */
const UNDEFINED = new Set([0x81, 0x8d, 0x8f, 0x90, 0x9d]);
/** Its letters below those of Latin-1: Š, Œ, Ž, š, œ, ž and Ÿ. */
const LETTERS_BELOW = new Set([0x8a, 0x8c, 0x8e, 0x9a, 0x9c, 0x9e, 0x9f]);
/** A multiplication and a division sign, among the letters. */
const SIGNS = new Set([0xd7, 0xf7]);
/** What may stand within a word: a curly apostrophe, a soft hyphen and the dot of `col·lega`. */
const WITHIN_WORDS = new Set([0x92, 0xad, 0xb7]);
/** Control characters of texts: tab, line feed, form feed, carriage return, escape. */
const CONTROLS = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);
/** The Icelandic word `þóð` has three. Words of other alphabets are longer. */
const HIGH_IN_A_ROW_MAX = 3;
/** Plain letters for each high one, at least. */
const PLAIN_FOR_HIGH_MIN = 2;

function looksWestern(bytes: Uint8Array): boolean {
  let row = 0;
  let [high, plain] = [0, 0];
  for (const [at, byte] of bytes.entries()) {
    if (byte < 0x80) {
      if (byte < 0x20 && !CONTROLS.has(byte)) return false;
      row = 0;
      if (isLetter(byte)) plain += 1;
      continue;
    }
    row += 1;
    if (row > HIGH_IN_A_ROW_MAX || UNDEFINED.has(byte)) return false;
    if (isLetter(byte)) high += 1;
    // In other encodings of Latin letters these bytes are letters: of Polish, Czech or Turkish.
    else if (!WITHIN_WORDS.has(byte) && isLetter(bytes[at - 1]) && isLetter(bytes[at + 1])) return false;
  }
  return plain >= PLAIN_FOR_HIGH_MIN * high;
}

function isLetter(byte = 0): boolean {
  if (byte >= 0xc0) return !SIGNS.has(byte);
  const lower = byte | 0x20;
  return (lower >= 0x61 && lower <= 0x7a && byte < 0x80) || LETTERS_BELOW.has(byte);
}
