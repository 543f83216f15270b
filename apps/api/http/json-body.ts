/**
 * Parses request bodies, which are JSON in UTF-8.
 *
 * Invariants: no returned string holds NUL, which PostgreSQL cannot store, or a lone surrogate, which the canonical
 * JSON of events cannot hold. An error repeats no part of the body, which may hold secrets.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { decodeUtf8 } from '../../../core/git/utf8.ts';
import { type Answer, problem } from './answer.ts';
import { namedStep } from './input.ts';

/** Values in a JSON body, lists and objects among them; a token names up to 10,000 repositories. */
export const JSON_BODY_VALUES_MAX = 12_000;
/** Values in the JSON body of a push over the API. */
export const PUSH_BODY_VALUES_MAX = 100_000;
/** Members of one object in a JSON body: to read the names of many costs more than to read as many values. */
export const OBJECT_MEMBERS_MAX = 1_000;

/** The server does not accept the body; `answer` is the client's answer. */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused';
  readonly answer: Answer;
  constructor(answer: Answer) {
    super('The body was refused');
    this.answer = answer;
  }
}

/**
 * Returns the value of a body; undefined for an empty one. Throws `BodyRefused`: 400 for a body that is not JSON in
 * UTF-8, 413 for too many values, 422 for a string with NUL or a lone surrogate.
 */
export function readJsonBody(headers: IncomingHttpHeaders, bytes: Buffer, valuesMax = JSON_BODY_VALUES_MAX): unknown {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') throw new BodyRefused(problem(400, 'A body is not compressed'));
  const [, charset] = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(headers['content-type'] ?? '') ?? [];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) throw new BodyRefused(problem(400, 'A body is in UTF-8'));
  if (bytes.length === 0) return undefined;
  const text = decodeUtf8(bytes);
  if (text === null) throw new BodyRefused(problem(400, 'The body is not valid UTF-8'));
  if (holdsMore(bytes, valuesMax)) {
    const bounds = `${valuesMax} values, or an object of more than ${OBJECT_MEMBERS_MAX} members`;
    throw new BodyRefused(problem(413, `The body holds more than ${bounds}: send fewer in one request`));
  }
  const value = parsed(text);
  // NUL and lone surrogates occur only as escapes: the text is valid UTF-8, and JSON forbids raw control characters.
  if (/\\u(0000|d[89a-f])/i.test(text)) refuseStrings(value);
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the body.
    if (error instanceof SyntaxError) throw new BodyRefused(problem(400, 'The body is not valid JSON'));
    throw error;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Counts before anything is made of the text: each value costs its memory and its check, and a wrong one a fault, of
 * many times its size. Where the text is no JSON the count says little, and the parser ends early.
 */
function holdsMore(bytes: Buffer, valuesMax: number): boolean {
  let values = 1;
  const members: number[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at] ?? 0) {
      case QUOTE:
        at = endOfString(bytes, at);
        continue;
      case 0x2c: // ,
        values += 1;
        break;
      case 0x3a: // :
        members.push((members.pop() ?? 0) + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        members.push(0);
        if (!closesNext(bytes, at + 1)) values += 1;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        members.pop();
        continue;
      default:
        continue;
    }
    if (values > valuesMax || (members.at(-1) ?? 0) > OBJECT_MEMBERS_MAX) return true;
  }
  return false;
}

/** Returns where the quote at the end is. */
function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Whether a list or an object ends here, but for spaces. */
function closesNext(bytes: Buffer, start: number): boolean {
  let at = start;
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0a || bytes[at] === 0x0d) at += 1;
  return bytes[at] === 0x5d || bytes[at] === 0x7d;
}

interface Place {
  readonly value: unknown;
  readonly key: string | number;
  readonly parent: Place | null;
}

/** Checks every string and every key. Not recursive, since a body may nest as deeply as it is long. */
function refuseStrings(body: unknown): void {
  const open: Place[] = [{ value: body, key: 'body', parent: null }];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { value } = place;
    if (typeof value === 'string') refuseText(value, place);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, child] of Object.entries(value)) {
        refuseText(key, place);
        open.push({ value: child, key: Array.isArray(value) ? Number(key) : key, parent: place });
      }
    }
  }
}

function refuseText(text: string, place: Place): void {
  const type = text.includes('\0') ? 'string_nul' : text.isWellFormed() ? null : 'string_surrogate';
  if (type === null) return;
  const loc: (string | number)[] = [];
  for (let at: Place | null = place; at !== null; at = at.parent) loc.push(at.key);
  const msg = type === 'string_nul' ? 'A text does not hold NUL' : 'A text does not hold a lone surrogate';
  const steps = loc.toReversed().slice(0, LOC_DEPTH_MAX);
  const named = steps.map((step) => (typeof step === 'number' ? step : namedStep(step)));
  throw new BodyRefused(problem(422, [{ loc: named, msg, type }]));
}

/** Steps of the place of a wrong text that an answer names. */
export const LOC_DEPTH_MAX = 20;
