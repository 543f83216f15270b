/**
 * Requests that are refused for their form alone, before anything is looked up.
 *
 * Must stay true: what two servers on a request's way could read differently is read by none: one of each
 * header that decides whose request it is or where it ends, and no transfer coding but `chunked`.
 */
import type { IncomingMessage } from 'node:http';
import { type Answer, problem } from '../api/http/answer.ts';

/** Node keeps the first of these and drops the others silently; `rawHeaders` still has them all. */
const SINGLE_HEADERS = new Set([
  ...['authorization', 'content-encoding', 'content-length', 'content-type', 'host'],
  ...['if-none-match', 'if-range', 'range', 'transfer-encoding'],
]);
const LENGTHS = new Set([...SINGLE_HEADERS].map((name) => name.length));

/** Why the request is refused with 400; null for a sound one. */
export function requestFault(request: IncomingMessage): Answer | null {
  const repeated = repeatedHeader(request.rawHeaders);
  if (repeated !== null) return refused(`The header ${repeated} came more than once`);
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    return refused('The only transfer coding accepted is chunked');
  }
  return null;
}

function refused(detail: string): Answer {
  // Where such a request ends is not certain, so nothing more is read from its connection.
  return problem(400, detail, { connection: 'close' });
}

function repeatedHeader(rawHeaders: readonly string[]): string | null {
  let seen: string[] | null = null;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index] ?? '';
    if (!LENGTHS.has(raw.length)) continue;
    const name = raw.toLowerCase();
    if (!SINGLE_HEADERS.has(name)) continue;
    if (seen === null) seen = [name];
    else if (seen.includes(name)) return name;
    else seen.push(name);
  }
  return null;
}

/** The token of `Authorization: Bearer <token>` (RFC 6750, section 2.1; the scheme without case); null for any other form. */
export function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  const [, token] = /^bearer +([^\s]{1,256}) *$/i.exec(authorization) ?? [];
  return token ?? null;
}
