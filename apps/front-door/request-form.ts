/**
 * Refuses malformed requests before anything is looked up.
 *
 * Invariants: the server refuses what it and a proxy in front of it could read differently. Each header that
 * decides who sends the request, what it requests or where it ends appears at most once, and `chunked` is the only
 * transfer coding.
 */
import type { IncomingMessage } from 'node:http';

/** Node keeps the first of these and drops the others silently; `rawHeaders` still has them all. */
const SINGLE_HEADERS = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-type',
  'git-protocol',
  'host',
  'idempotency-key',
  'if-none-match',
  'if-range',
  'range',
  'transfer-encoding',
]);
const LENGTHS = new Set([...SINGLE_HEADERS].map((name) => name.length));

/**
 * Returns why the request is refused with 400, or null for a well-formed one. The end of a refused request is not
 * certain, so the caller must close its connection.
 */
export function formFault(request: IncomingMessage): string | null {
  const repeated = repeatedHeader(request.rawHeaders);
  if (repeated !== null) return `The header ${repeated} came more than once`;
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    return 'The only transfer coding accepted is chunked';
  }
  return null;
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
