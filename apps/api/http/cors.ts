/**
 * Lets scripts of every site read the API with a token that they hold (Fetch Standard, CORS protocol).
 *
 * Invariants: only reading is allowed, and without credentials: a browser sends no cookie along, so a script of
 * another site reads nothing that its own token could not read.
 */
import type { Answer, Headers } from './answer.ts';

/** None for a request that scripts of other sites may not make. */
export function corsHeaders(method: string): Headers {
  return READING.has(method) ? SHARED : NONE;
}

/** Whether a browser asks what scripts may do, which it does without a token. */
export function isPreflight(method: string, target: string): boolean {
  return method === 'OPTIONS' && target.startsWith('/v1/');
}

/** The same for every path, so that it tells nothing of what exists. */
export const PREFLIGHT: Answer = {
  status: 204,
  headers: {
    'access-control-allow-methods': 'GET, HEAD, OPTIONS',
    'access-control-allow-headers': 'authorization, accept, content-type, if-none-match, range',
    'access-control-max-age': '86400',
  },
  body: { kind: 'none' },
};

const NONE: Headers = {};
const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

const SHARED: Headers = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'etag, x-request-id, retry-after, www-authenticate, content-disposition, content-range, ' +
    'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset',
};
