/** Translates what the body of a new commit says into bytes, and what is wrong with it into an answer. */
import { z } from 'zod';
import { encodeUtf8 } from '../../core/git/utf8.ts';
import { ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import type { StoredBlob } from '../../core/ports/new-contents.ts';
import {
  type CommitFault,
  pathAtFault,
  type WantedChange,
  type WantedContent,
} from '../../core/use-cases/pushing/decide-commit.ts';
import { CHANGE_FAULTS } from '../front-door/texts/change-faults.ts';
import { reasonOf } from '../front-door/texts/ref-faults.ts';
import { pathMembers } from './contents-json.ts';
import { type Answer, explained, type FieldFault, problem } from './http/answer.ts';
import { movedJson } from './ref-faults.ts';
import { type COMMIT_NOT_WRITTEN, COMMIT_PARTS_MAX, type NEW_COMMIT } from './schemas/new-commits.ts';

type Body = z.output<typeof NEW_COMMIT>;
type Change = Body['changes'][number];

/** Why a member of a change cannot be read. */
class Unreadable extends Error {
  override readonly name = 'Unreadable';
  readonly member: string;
  constructor(member: string, message: string) {
    super(message);
    this.member = member;
  }
}

/** The contents of parts, by their names. */
type SentContents = ReadonlyMap<string, StoredBlob>;

const NAMING = z.object({ changes: z.array(z.object({ part: z.string().optional() })) });

/**
 * Returns the parts that the changes of a body name, each with the number of its change, before the rest of the body is
 * judged. Null: it is no body of a commit, as its schema will tell.
 */
export function namedParts(
  body: unknown,
): ReadonlyMap<string, number> | { readonly faults: readonly FieldFault[] } | null {
  const read = NAMING.safeParse(body);
  if (!read.success) return null;
  const named = new Map<string, number>();
  for (const [index, { part }] of read.data.changes.entries()) {
    if (part === undefined) continue;
    if (named.has(part)) return { faults: [partFault(index, 'Another change names this part')] };
    if (named.size === COMMIT_PARTS_MAX) {
      return { faults: [partFault(index, `Expected at most ${COMMIT_PARTS_MAX} changes with a part`)] };
    }
    named.set(part, index);
  }
  return named;
}

export function partMissing(index: number): FieldFault {
  return partFault(index, NO_SUCH_PART);
}

const NO_SUCH_PART = 'The request has no part of this name';

function partFault(index: number, msg: string): FieldFault {
  return { loc: ['body', 'changes', index, 'part'], msg, type: 'custom' };
}

export function changesOf(
  changes: Body['changes'],
  contents: SentContents,
): readonly WantedChange[] | { readonly faults: readonly FieldFault[] } {
  const wanted: WantedChange[] = [];
  for (const [index, change] of changes.entries()) {
    try {
      wanted.push(changeOf(change, contents));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      const { member, message } = error;
      return { faults: [{ loc: ['body', 'changes', index, member], msg: message, type: 'custom' }] };
    }
  }
  return wanted;
}

function changeOf(change: Change, contents: SentContents): WantedChange {
  const expected = change.expected_blob === undefined ? 'any' : change.expected_blob;
  const path = oneOf('path', bytesOf(change.path), base64('path_base64', change.path_base64));
  switch (change.action) {
    case 'put': {
      const { mode = null } = change;
      return { action: 'put', path, expected, mode, content: contentOf(change, contents) };
    }
    case 'delete':
      return { action: 'delete', path, expected };
    case 'move': {
      const to = oneOf('to', bytesOf(change.to), base64('to_base64', change.to_base64));
      return { action: 'move', path, expected, to };
    }
  }
}

function contentOf(change: Extract<Change, { readonly action: 'put' }>, contents: SentContents): WantedContent {
  const { content, content_base64, blob, part } = change;
  const stored = part === undefined ? undefined : contents.get(part);
  if (part !== undefined && stored === undefined) throw new Unreadable('part', NO_SUCH_PART);
  return oneOf<WantedContent>('content', bytesOf(content), base64('content_base64', content_base64), blob, stored);
}

function oneOf<Value>(member: string, ...values: readonly (Value | undefined)[]): Value {
  const [value, ...others] = values.filter((candidate) => candidate !== undefined);
  if (value !== undefined && others.length === 0) return value;
  const names = [member, `${member}_base64`, ...(values.length > 2 ? ['blob', 'part'] : [])].join(', ');
  throw new Unreadable(member, `Expected exactly one of ${names}`);
}

function bytesOf(text: string | undefined): Uint8Array | undefined {
  return text === undefined ? undefined : encodeUtf8(text);
}

function base64(member: string, text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text, 'base64');
  // Node skips what is not base64.
  if (bytes.toString('base64') !== text) throw new Unreadable(member, 'Expected base64 with its padding');
  return bytes;
}

export function notWritten(fault: CommitFault, changes: readonly WantedChange[]): Answer {
  switch (fault.at) {
    case 'branch': {
      const { ref, code, head } = fault.fault;
      const reason = reasonOf(fault.fault);
      if (head !== null) return explained(409, { detail: `${ref}: ${reason}`, ...movedJson(fault.fault) });
      return problem(422, [{ loc: ['body', 'branch'], msg: reason, type: code }]);
    }
    case 'start': {
      const msg = fault.code === 'start-not-found' ? 'There is no such commit' : 'The branch is there already';
      return problem(422, [{ loc: ['body', 'start'], msg, type: fault.code }]);
    }
    case 'changes':
      return problem(422, [{ loc: ['body', 'changes'], msg: 'Expected a change, or allow_empty', type: fault.code }]);
    case 'objects':
      return problem(422, [{ loc: ['body', 'changes'], msg: fault.detail, type: fault.code }]);
    case 'change': {
      const { index, field, code, found } = fault;
      if (code !== 'blob-moved')
        return problem(422, [{ loc: ['body', 'changes', index, field], msg: CHANGE_FAULTS[code], type: code }]);
      const path = pathAtFault(changes, fault);
      const members = path === undefined ? {} : pathMembers(path);
      const detail = `changes[${index}]: ${CHANGE_FAULTS[code]}`;
      const json: z.output<typeof COMMIT_NOT_WRITTEN> = {
        detail,
        code,
        index,
        ...members,
        blob: found ?? ZERO_OBJECT_ID,
      };
      return explained(409, json);
    }
  }
}
