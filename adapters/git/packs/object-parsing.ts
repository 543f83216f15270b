/**
 * Parses commits and tags the way git does (commit.c, ident.c). Of trees see tree-entries.ts.
 *
 * Invariants: no bytes make a parser throw. A part that cannot be parsed is empty, zero or null, since the checks
 * of a push accept old histories that break some rules.
 */
import type { Commit, ObjectType, Signature, TagObject } from '../../../core/git/objects.ts';
import { type ObjectId, parseObjectId } from '../../../core/kernel/ids.ts';

const LINE_FEED = 0x0a;
const NO_SIGNATURE: Signature = { name: '', email: '', seconds: 0, offsetMinutes: 0 };

interface Headers {
  /** In their order; continuation lines (of signatures) are left out. */
  readonly lines: readonly (readonly [name: string, value: Buffer])[];
  readonly body: Buffer;
}

function splitHeaders(bytes: Buffer): Headers {
  const lines: (readonly [string, Buffer])[] = [];
  let at = 0;
  while (at < bytes.length && bytes[at] !== LINE_FEED) {
    const end = bytes.indexOf(LINE_FEED, at);
    const line = bytes.subarray(at, end < 0 ? bytes.length : end);
    const space = line.indexOf(' ');
    if (space > 0) lines.push([line.toString('latin1', 0, space), line.subarray(space + 1)]);
    at += line.length + 1;
  }
  return { lines, body: bytes.subarray(Math.min(at + 1, bytes.length)) };
}

/** Parses a commit; null when it names no tree. */
export function parseCommit(id: ObjectId, bytes: Buffer): Commit | null {
  const { lines, body } = splitHeaders(bytes);
  const values = (name: string) => lines.filter((line) => line[0] === name).map((line) => line[1]);
  const tree = parseObjectId(values('tree')[0]?.toString('latin1') ?? '');
  if (tree === null) return null;
  const decode = decoderOf(values('encoding')[0]);
  return {
    id,
    tree,
    parents: parentsOf(lines),
    author: parseSignature(values('author')[0], decode),
    committer: parseSignature(values('committer')[0], decode),
    message: decode(body),
  };
}

/** Parses only what a walk needs: the parents and the committer's date. */
export function parseCommitLinks(bytes: Buffer): { readonly parents: readonly ObjectId[]; readonly seconds: number } {
  const { lines } = splitHeaders(bytes);
  const committer = lines.find(([name]) => name === 'committer')?.[1];
  return { parents: parentsOf(lines), seconds: parseSignature(committer, (raw) => raw.toString('latin1')).seconds };
}

/** git uses only the `parent` lines right after the `tree` line. Its checks of a push ignore later ones, too. */
function parentsOf(lines: Headers['lines']): readonly ObjectId[] {
  const parents: ObjectId[] = [];
  for (const [name, value] of lines.slice(1)) {
    if (name !== 'parent') break;
    const parent = parseObjectId(value.toString('latin1'));
    if (parent !== null) parents.push(parent);
  }
  return parents;
}

/** The object that an annotated tag points at; null when the tag does not name one. */
export function parseTag(bytes: Buffer): { readonly id: ObjectId; readonly type: ObjectType } | null {
  const { lines } = splitHeaders(bytes);
  const id = parseObjectId(lines.find(([name]) => name === 'object')?.[1].toString('latin1') ?? '');
  const type = lines.find(([name]) => name === 'type')?.[1].toString('latin1');
  if (id === null) return null;
  return type === 'commit' || type === 'tree' || type === 'blob' || type === 'tag' ? { id, type } : null;
}

/** Tagger and message of an annotated tag. Its signature stays part of the message, as in the object. */
export function parseTagObject(id: ObjectId, bytes: Buffer): TagObject {
  const { lines, body } = splitHeaders(bytes);
  const decode = decoderOf(lines.find(([name]) => name === 'encoding')?.[1]);
  const tagger = lines.find(([name]) => name === 'tagger')?.[1];
  return { id, tagger: tagger === undefined ? null : parseSignature(tagger, decode), message: decode(body) };
}

type Decode = (raw: Buffer) => string;

/** Decodes from the encoding that the object names, as git does. With an unknown encoding the bytes count as UTF-8. */
function decoderOf(encoding: Buffer | undefined): Decode {
  const label = encoding?.toString('latin1').trim();
  if (label === undefined || /^utf-?8$/i.test(label)) return (raw) => raw.toString('utf8');
  try {
    const decoder = new TextDecoder(label);
    return (raw) => decoder.decode(raw);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return (raw) => raw.toString('utf8');
  }
}

const DATE = /^\s*(\d+)(?:\s+([+-])(\d{2,})(\d{2})\b)?/;

/** Parses `name <email> seconds zone`; the date is what follows the last `>` (split_ident_line). */
function parseSignature(line: Buffer | undefined, decode: Decode): Signature {
  if (line === undefined) return NO_SIGNATURE;
  const opened = line.indexOf('<');
  const closed = opened < 0 ? -1 : line.indexOf('>', opened);
  if (closed < 0) return { ...NO_SIGNATURE, name: decode(line).trim() };
  const name = decode(line.subarray(0, opened)).trim();
  const email = decode(line.subarray(opened + 1, closed)).trim();
  const [, digits = '0', sign = '+', hours = '0', minutes = '0'] =
    DATE.exec(line.subarray(line.lastIndexOf('>') + 1).toString('latin1')) ?? [];
  const seconds = Number(digits);
  const offsetMinutes = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
  return {
    name,
    email,
    // git takes a date that it cannot represent for its largest one, so such a commit leaves a walk first.
    seconds: Math.min(seconds, Number.MAX_SAFE_INTEGER),
    offsetMinutes: Number.isSafeInteger(offsetMinutes) ? offsetMinutes || 0 : 0,
  };
}
