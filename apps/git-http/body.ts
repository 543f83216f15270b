/**
 * What a Git client's HTTP request asks for, and its body as plain bytes.
 *
 * Must stay true: the path is taken apart on its raw form, so no encoding of `/` or `..` reaches a lookup; a
 * body is bounded after inflation and cannot stall for ever.
 */
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

export type GitService = 'git-upload-pack' | 'git-receive-pack';

export type GitRoute =
  | { readonly kind: 'info-refs'; readonly username: string; readonly repository: string; readonly service: GitService }
  | { readonly kind: 'rpc'; readonly username: string; readonly repository: string; readonly service: GitService };

/** Names as they stand in URLs here hold no character that needs an escape; what has one names nothing. */
const PATH =
  /^\/r\/([A-Za-z0-9-]{1,64})\/([A-Za-z0-9._-]{1,128}?)(?:\.git)?\/(info\/refs|git-upload-pack|git-receive-pack)$/i;

/** `dumb` is a fetch by a client without the smart protocol, which is not offered. */
export function parseGitRoute(target: string): GitRoute | 'dumb' | null {
  const at = target.indexOf('?');
  const path = at === -1 ? target : target.slice(0, at);
  const [, username, repository, rest] = PATH.exec(path) ?? [];
  if (username === undefined || repository === undefined || rest === undefined) return null;
  if (rest === 'git-upload-pack' || rest === 'git-receive-pack') {
    return { kind: 'rpc', username, repository, service: rest };
  }
  if (rest !== 'info/refs') return null;
  const service = new URLSearchParams(at === -1 ? '' : target.slice(at + 1)).get('service');
  if (service === null) return 'dumb';
  if (service !== 'git-upload-pack' && service !== 'git-receive-pack') return null;
  return { kind: 'info-refs', username, repository, service };
}

/** The password of HTTP Basic credentials (RFC 7617), which is the access token; null when there are none. */
export function basicPassword(authorization: string | undefined): string | null {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return null;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  return colon === -1 ? null : decoded.slice(colon + 1);
}

/**
 * Why a request is refused for its form alone; null for a sound one. What two servers on its way could read
 * differently is read by none: of repeated headers Node silently keeps the first, and any coding before `chunked`
 * it ignores.
 */
export function formFault(request: IncomingMessage): string | null {
  const seen = new Set<string>();
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index]?.toLowerCase() ?? '';
    if (!SINGLE_HEADERS.has(name)) continue;
    if (seen.has(name)) return `The header ${name} came more than once`;
    seen.add(name);
  }
  const coding = request.headers['transfer-encoding']?.trim().toLowerCase() ?? 'chunked';
  return coding === 'chunked' ? null : 'The only transfer coding accepted is chunked';
}

const SINGLE_HEADERS = new Set([
  ...['authorization', 'content-encoding', 'content-length', 'content-type', 'git-protocol', 'host'],
  'transfer-encoding',
]);

export type BodyErrorCode = 'body-encoding-unknown' | 'body-too-large' | 'body-broken';

/** The body is not one we take; the client is told why. */
export class BodyError extends Error {
  override readonly name = 'BodyError';
  readonly code: BodyErrorCode;
  constructor(code: BodyErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

export interface Body {
  /** The bytes after inflation; throws BodyError. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Bytes that came over the wire so far. */
  readonly receivedBytes: () => number;
  /**
   * Ends the reading of `bytes`, then reads what is left and throws it away, so that git reads our answer instead
   * of a broken pipe. False when more than `bytesMax` were left: the connection is of no further use.
   */
  discardRest(bytesMax: number): Promise<boolean>;
}

/** The request's body: gzip is undone (git compresses what exceeds 1 KiB), `idleMs` bounds every silence. */
export function openBody(request: IncomingMessage, options: { readonly idleMs: number }): Body {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const counter = { bytes: 0 };
  // Nobody listens to the socket's timeout, so that it ends the socket (node:http, Event 'timeout').
  request.socket.setTimeout(options.idleMs);
  const wire = counted(request, counter);
  const bytes = encoding === 'identity' ? wire : inflate(wire, encoding);
  return {
    bytes,
    receivedBytes: () => counter.bytes,
    async discardRest(bytesMax) {
      // A suspended reader holds the request paused, so that nobody else could read on.
      await bytes.return();
      const end = counter.bytes + bytesMax;
      try {
        for await (const _ of counted(request, counter)) {
          if (counter.bytes > end) return false;
        }
      } catch (error) {
        // The client went away: its answer will find nobody, which is no fault of this request.
        if (!request.destroyed) throw error;
      }
      return true;
    },
  };
}

/** Leaving the loop early must not destroy the request: its answer still goes over the same socket. */
async function* counted(request: IncomingMessage, counter: { bytes: number }): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!(chunk instanceof Buffer)) throw new TypeError('A request body is read as bytes');
    counter.bytes += chunk.length;
    yield chunk;
  }
  // From here on it is us who are slow.
  request.socket.setTimeout(0);
}

async function* inflate(
  wire: AsyncGenerator<Buffer, void, undefined>,
  encoding: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw new BodyError('body-encoding-unknown', 'The body may be compressed by gzip or not at all');
  }
  const inflated = createGunzip();
  const pumping = pipeline(wire, inflated);
  // Its failure reaches the loop below through the stream itself.
  pumping.catch(() => undefined);
  try {
    yield* inflated;
  } catch (cause) {
    throw new BodyError('body-broken', 'The body is not valid gzip, or ended early', { cause });
  } finally {
    inflated.destroy();
  }
}

/** The whole body in one piece, at most `bytesMax`. */
export async function readWhole(bytes: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of bytes) {
    total += chunk.length;
    if (total > bytesMax) throw new BodyError('body-too-large', `The body takes more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? Buffer.from(chunks[0]) : Buffer.concat(chunks, total);
}
