/**
 * What a handler gives back: an answer as data, which one place writes to the wire.
 *
 * Must stay true: an error's body has one of the two shapes of interface.md, `{"detail": text}` or
 * `{"detail": [{loc, msg, type}]}`, and repeats nothing of the request that could be a secret.
 */
import type { Readable } from 'node:stream';

export type Headers = Readonly<Record<string, string>>;

/** `json` is serialised here; bytes and streams go out as they are, with the content type their headers name. */
export type AnswerBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly json: object }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'stream'; readonly stream: Readable };

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AnswerBody;
}

/** One field that was not accepted, as interface.md writes it. */
export interface FieldFault {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

const NO_BODY: AnswerBody = { kind: 'none' };
/** What is made for one caller is kept by nobody. */
const UNSTORED: Headers = { 'cache-control': 'no-store' };

export function ok(json: object, status: 200 | 201 | 202 = 200): Answer {
  return { status, headers: UNSTORED, body: { kind: 'json', json } };
}

export function noContent(): Answer {
  return { status: 204, headers: UNSTORED, body: NO_BODY };
}

export function notModified(headers: Headers): Answer {
  return { status: 304, headers, body: NO_BODY };
}

export function problem(status: number, detail: string | readonly FieldFault[], headers: Headers = {}): Answer {
  return { status, headers: { ...UNSTORED, ...headers }, body: { kind: 'json', json: { detail } } };
}

/** 401: no token, or one that is malformed, unknown, expired or revoked. */
export function unauthenticated(detail: string): Answer {
  return problem(401, detail, { 'www-authenticate': 'Bearer' });
}

/** 503 with the seconds after which trying again makes sense. */
export function unavailable(detail: string, retryAfterSeconds: number): Answer {
  return problem(503, detail, { 'retry-after': String(retryAfterSeconds) });
}
