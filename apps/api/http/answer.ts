/**
 * A handler's answer as data, which apps/api/app.ts writes to the wire.
 *
 * Invariants: an error's body has one of the two shapes of docs/interface.md, `{"detail": text}` or
 * `{"detail": [{loc, msg, type}]}`, and repeats no part of the request that could be a secret.
 */
import type { Readable } from 'node:stream';

export type Headers = Readonly<Record<string, string>>;

/**
 * `json` is serialised by apps/api/app.ts. Bytes and streams are sent as they are, with the content type in `headers`.
 */
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

/** One rejected field, in the form of docs/interface.md. */
export interface FieldFault {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

const NO_BODY: AnswerBody = { kind: 'none' };
/** No cache may store an answer that is made for one caller. */
const UNSTORED: Headers = { 'cache-control': 'no-store' };

export function ok(json: object, status: 200 | 201 | 202 = 200): Answer {
  return { status, headers: UNSTORED, body: { kind: 'json', json } };
}

export function plainText(text: string, headers: Headers = UNSTORED): Answer {
  const bytes = Buffer.from(text, 'utf8');
  return {
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
    body: { kind: 'bytes', bytes },
  };
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

/** A refusal that says more than its text. */
export function explained(status: 409 | 422, json: object): Answer {
  return { status, headers: UNSTORED, body: { kind: 'json', json } };
}

/** 401: no token, or one that is malformed, unknown, expired or revoked. */
export function unauthenticated(detail: string): Answer {
  return problem(401, detail, { 'www-authenticate': 'Bearer' });
}

/** 503 with the seconds after which the client may retry. */
export function unavailable(detail: string, retryAfterSeconds: number): Answer {
  return problem(503, detail, { 'retry-after': String(retryAfterSeconds) });
}
