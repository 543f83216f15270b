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
/** The same in the body of a push over the API. */
export const PUSH_BODY_VALUES_MAX = 100_000;

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
  const value = parsed(text);
  if (holdsMore(value, valuesMax)) {
    throw new BodyRefused(problem(413, `The body holds more than ${valuesMax} values: send fewer in one request`));
  }
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

/** Each value costs its check, and a wrong one a fault, of many times its size. Not recursive: see `refuseStrings`. */
function holdsMore(body: unknown, valuesMax: number): boolean {
  const open: unknown[] = [body];
  let count = 1;
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    const children = Object.values(value);
    count += children.length;
    if (count > valuesMax) return true;
    for (const child of children) if (typeof child === 'object') open.push(child);
  }
  return false;
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
