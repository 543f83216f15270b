/**
 * Parses commits and tags the way git does (commit.c, ident.c). Of trees see tree-entries.ts.
 *
 * Invariants: no bytes make a parser throw. A part that cannot be parsed is empty, zero or null, since the checks
 * of a push accept old histories that break some rules. Names and messages are what git shows (shown-commit.ts), and
 * bytes of them that are not UTF-8 become U+FFFD.
 */
import type { Commit, ObjectType, Signature, TagObject } from '../../../core/git/objects.ts';
import { type ObjectId, parseObjectId } from '../../../core/kernel/ids.ts';
import { shownCommit } from './shown-commit.ts';

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

/** The first of this name. */
function valueOf({ lines }: Headers, name: string): Buffer | undefined {
  return lines.find((line) => line[0] === name)?.[1];
}

/** Parses a commit; null when it names no tree. */
export function parseCommit(id: ObjectId, bytes: Buffer): Commit | null {
  const stored = splitHeaders(bytes);
  const tree = parseObjectId(valueOf(stored, 'tree')?.toString('latin1') ?? '');
  if (tree === null) return null;
  const inUtf8 = shownCommit(bytes, valueOf(stored, 'encoding'));
  const shown = inUtf8 === bytes ? stored : splitHeaders(inUtf8);
  return {
    id,
    tree,
    parents: parentsOf(stored.lines),
    author: parseSignature(valueOf(shown, 'author')),
    committer: parseSignature(valueOf(shown, 'committer')),
    message: shown.body.toString('utf8'),
  };
}

/** Parses only what a walk needs: the parents and the committer's date. */
export function parseCommitLinks(bytes: Buffer): { readonly parents: readonly ObjectId[]; readonly seconds: number } {
  const headers = splitHeaders(bytes);
  return { parents: parentsOf(headers.lines), seconds: parseSignature(valueOf(headers, 'committer')).seconds };
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
  const headers = splitHeaders(bytes);
  const id = parseObjectId(valueOf(headers, 'object')?.toString('latin1') ?? '');
  const type = valueOf(headers, 'type')?.toString('latin1');
  if (id === null) return null;
  return type === 'commit' || type === 'tree' || type === 'blob' || type === 'tag' ? { id, type } : null;
}

/**
 * Tagger and message of an annotated tag. Its signature stays part of the message, as in the object. git reads no
 * encoding in a tag.
 */
export function parseTagObject(id: ObjectId, bytes: Buffer): TagObject {
  const headers = splitHeaders(bytes);
  const tagger = valueOf(headers, 'tagger');
  return {
    id,
    tagger: tagger === undefined ? null : parseSignature(tagger),
    message: headers.body.toString('utf8'),
  };
}

const DATE = /^\s*(\d+)(?:\s+([+-])(\d{2,})(\d{2})\b)?/;

/** Parses `name <email> seconds zone`; the date is what follows the last `>` (split_ident_line). */
function parseSignature(line: Buffer | undefined): Signature {
  if (line === undefined) return NO_SIGNATURE;
  const opened = line.indexOf('<');
  const closed = opened < 0 ? -1 : line.indexOf('>', opened);
  if (closed < 0) return { ...NO_SIGNATURE, name: line.toString('utf8').trim() };
  const name = line.toString('utf8', 0, opened).trim();
  const email = line.toString('utf8', opened + 1, closed).trim();
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
