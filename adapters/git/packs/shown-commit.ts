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
  return composes === true ? compose(text) : text;
}

/** The letters of Hebrew with a mark, which Unicode keeps apart in its composed form. */
const HEBREW = new Map(
  Array.from({ length: 0x32 }, (_, at) => String.fromCharCode(0xfb1d + at)).map((letter) => [
    letter.normalize('NFD'),
    letter,
  ]),
);

/** What became of pairs before, by both of their code units: the encodings that compose have some thousand. */
const KNOWN_PAIRS = new Map<number, string>();

/** Composes each letter with the first mark behind it, where Unicode has one character for both. */
function compose(text: string): string {
  let composed = '';
  let from = 0;
  for (let at = 1; at < text.length; at += 1) {
    const mark = text.charCodeAt(at);
    if (!isMark(mark)) continue;
    const letter = text.charCodeAt(at - 1);
    if (at > from && !isMark(letter)) {
      composed += text.slice(from, at - 1) + pairOf(letter, mark);
      from = at + 1;
    }
  }
  return composed + text.slice(from);
}

/** The encodings that compose hold the marks of Vietnamese and the points of Hebrew. */
function isMark(unit: number): boolean {
  return (unit >= 0x300 && unit <= 0x36f) || (unit >= 0x5b0 && unit <= 0x5c2);
}

function pairOf(letter: number, mark: number): string {
  const key = letter * 0x1_0000 + mark;
  const known = KNOWN_PAIRS.get(key);
  if (known !== undefined) return known;
  const pair = String.fromCharCode(letter, mark);
  const one = HEBREW.get(pair) ?? pair.normalize('NFC');
  const made = one.length === 1 ? one : pair;
  KNOWN_PAIRS.set(key, made);
  return made;
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
  const roles = rolesOf(form);
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at, roles);
    if (length === 0) return false;
    at += length;
  }
  return true;
}

const SINGLE = 1;
const FIRST = 2;
const SECOND = 4;
const BEFORE_2 = 8;
/** What each byte may be, by form. A stranger chooses the bytes, so a look at one costs next to nothing. */
const ROLES = new Map<ByteForm, Uint8Array>();

function rolesOf(form: ByteForm): Uint8Array {
  const known = ROLES.get(form);
  if (known !== undefined) return known;
  const { single, first, second, before2 } = form;
  const isIn = (spans: ByteForm['single'], byte: number) => spans.some(([low, high]) => byte >= low && byte <= high);
  const roles = Uint8Array.from({ length: 256 }, (_, byte) => {
    const pair = (isIn(first, byte) ? FIRST : 0) + (isIn(second, byte) ? SECOND : 0);
    return (isIn(single, byte) ? SINGLE : 0) + pair + (byte === before2 ? BEFORE_2 : 0);
  });
  ROLES.set(form, roles);
  return roles;
}

/** Returns 0 if no character of the form begins there. */
function characterLength(bytes: Buffer, at: number, roles: Uint8Array): number {
  const role = roles[bytes[at] ?? 0] ?? 0;
  if ((role & SINGLE) !== 0) return 1;
  if (!isSecond(bytes, at + 1, roles)) return 0;
  if ((role & BEFORE_2) !== 0) return isSecond(bytes, at + 2, roles) ? 3 : 0;
  return (role & FIRST) === 0 ? 0 : 2;
}

function isSecond(bytes: Buffer, at: number, roles: Uint8Array): boolean {
  return at < bytes.length && ((roles[bytes[at] ?? 0] ?? 0) & SECOND) !== 0;
}
