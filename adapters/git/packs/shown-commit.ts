/**
 * The bytes of a commit as `git log --encoding=UTF-8` shows them (repo_logmsg_reencode in git's pretty.c).
 *
 * Invariants: git decides once for the whole commit. One byte that is not in the encoding which the header `encoding`
 * names leaves names, headers and message as they are stored. No bytes make it throw.
 */
import iconv from 'iconv-lite';
import { type ByteForm, NAMED_ENCODINGS, type NamedEncoding } from './encoding-names.ts';

/** Replaces what cannot be decoded. */
const REPLACEMENT = '\ufffd';
/** iconv-lite has no codec with escape sequences, and those of the others know fewer characters than glibc. */
const BY_PLATFORM: ReadonlySet<string> = new Set(['iso-2022-jp', 'big5', 'gb18030']);
const LATIN_1 = 'ISO-8859-1';
const ENCODINGS = new Map(
  NAMED_ENCODINGS.flatMap((encoding) => encoding.names.split(' ').map((name) => [name, encoding] as const)),
);

/**
 * Returns the commit's bytes in UTF-8, or the same bytes if git would show them as they are. `encoding` is the value of
 * its header.
 */
export function shownCommit(bytes: Buffer, encoding: Buffer | undefined): Buffer {
  const found = encoding === undefined ? undefined : findEncoding(encoding.toString('latin1'));
  const text = found === undefined ? null : decodeStrictly(bytes, found);
  return text === null ? bytes : Buffer.from(text);
}

/**
 * Finds it by its name as git and iconv read names: iconv drops other characters and what follows two slashes, and git
 * knows `latin-1` itself.
 */
function findEncoding(name: string): NamedEncoding | undefined {
  const known = name
    .replaceAll(/[^\w\-.,:/]|\/\/.*/g, '')
    .replace(/\/$/, '')
    .toUpperCase();
  return ENCODINGS.get(name.toLowerCase() === 'latin-1' ? LATIN_1 : known);
}

/** Returns null if a byte is not in the encoding. */
function decodeStrictly(bytes: Buffer, { codec, form, composes }: NamedEncoding): string | null {
  if (form !== undefined && !hasForm(bytes, form)) return null;
  if (BY_PLATFORM.has(codec)) return decodeByPlatform(bytes, codec);
  const text = iconv.decode(bytes, codec);
  if (text.includes(REPLACEMENT)) return null;
  return composes === true ? text.replaceAll(LETTER_AND_MARK, composed) : text;
}

const LETTER_AND_MARK = /\P{M}\p{M}/gu;
/** The letters of Hebrew with a mark, which Unicode keeps apart in its composed form. */
const HEBREW = new Map(
  Array.from({ length: 0x32 }, (_, at) => String.fromCharCode(0xfb1d + at)).map((letter) => [
    letter.normalize('NFD'),
    letter,
  ]),
);

function composed(pair: string): string {
  const one = HEBREW.get(pair) ?? pair.normalize('NFC');
  return one.length === 1 ? one : pair;
}

function decodeByPlatform(bytes: Buffer, label: string): string | null {
  try {
    return new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    // A byte is not in the encoding, or this Node was built without its table.
    if (error instanceof TypeError || error instanceof RangeError) return null;
    throw error;
  }
}

function hasForm(bytes: Buffer, form: ByteForm): boolean {
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at, form);
    if (length === 0) return false;
    at += length;
  }
  return true;
}

/** Returns 0 if no character of the form begins there. */
function characterLength(bytes: Buffer, at: number, { single, first, second, before2 }: ByteForm): number {
  const byte = bytes[at];
  if (isIn(single, byte)) return 1;
  if (!isIn(second, bytes[at + 1])) return 0;
  if (byte === before2) return isIn(second, bytes[at + 2]) ? 3 : 0;
  return isIn(first, byte) ? 2 : 0;
}

function isIn(spans: ByteForm['single'], byte: number | undefined): boolean {
  return byte !== undefined && spans.some(([first, last]) => byte >= first && byte <= last);
}
