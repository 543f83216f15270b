/**
 * Reads a Git client's request body to its end, as one buffer of plain bytes.
 *
 * Invariants: a body is bounded after inflation, in bytes and in time, and counts in the budget of bodies as it grows,
 * with what its pieces take of memory. A client that stays silent for `idleMs` loses its connection. Nothing is read on
 * once what came is wrong. What has arrived whole is read in one step: nobody is waited for, so no time is limited.
 */
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { BODY_CHUNK_HELD_BYTES } from '../../core/kernel/limits.ts';
import { LATE_BODY_TEXT } from '../front-door/body-span.ts';
import type { Held } from '../front-door/held-bytes.ts';
import { BodyError, brokenGzip, encodingOf, inflate, isGzip, openBody } from './body.ts';

export interface WholeBodyOptions {
  readonly bytesMax: number;
  readonly spanMs: number;
  /** Counts what is read; its owner releases it. */
  readonly held: Pick<Held, 'grow'>;
  /** Returns false when nothing more need be read, since what was read is wrong already. */
  readonly isWanted: (chunk: Uint8Array) => boolean;
}

export interface WholeBody {
  /** After inflation. */
  readonly bytes: Buffer;
  /** Over the wire. */
  readonly receivedBytes: number;
}

/**
 * Gzip of this size, which becomes no larger than that, is inflated in one step on the event loop, in a fraction of a
 * millisecond: a stream costs several times as much. Git's larger requests are ids, of which gzip saves half. Internal:
 * both ways give the same bytes.
 */
const GZIP_AT_ONCE_BYTES_MAX = 32 * 1024;
const INFLATED_AT_ONCE_BYTES_MAX = 128 * 1024;

/**
 * Resolves to the whole body, or to what came until it was not wanted any more. Throws `BodyError`: `body-too-large`
 * beyond `bytesMax`, `body-too-slow` after `spanMs`, and `body-of-…-held` when there is no memory for it.
 */
export async function readBody(
  request: IncomingMessage,
  { idleMs, ...options }: WholeBodyOptions & { readonly idleMs: number },
): Promise<WholeBody> {
  const encoding = encodingOf(request);
  if (encoding === 'identity') {
    const bytes = await (request.complete ? readArrived(request, options) : readArriving(request, idleMs, options));
    return { bytes, receivedBytes: bytes.length };
  }
  if (request.complete && isGzip(encoding)) {
    const compressed = arrived(request);
    return { bytes: await inflateArrived(compressed, encoding, options), receivedBytes: compressed.length };
  }
  const body = openBody(request, { idleMs });
  const bytes = await readWhole(body.bytes, options);
  return { bytes, receivedBytes: body.receivedBytes() };
}

/** Reads from any source, as `readBody` does. */
export async function readWhole(bytes: AsyncIterable<Uint8Array>, options: WholeBodyOptions): Promise<Buffer> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  // A body that arrives in time leaves it pending.
  late.catch(() => undefined);
  const timer = setTimeout(() => reject(tooSlow()), options.spanMs);
  const chunks = bytes[Symbol.asyncIterator]();
  const gathered = gather(options);
  const next = () => Promise.race([chunks.next(), late]);
  try {
    for (let read = await next(); read.done !== true; read = await next()) if (!gathered.take(read.value)) break;
    return gathered.whole();
  } finally {
    clearTimeout(timer);
    // It may wait for bytes until the connection ends.
    chunks.return?.()?.catch(() => undefined);
  }
}

function tooSlow(): BodyError {
  return new BodyError('body-too-slow', LATE_BODY_TEXT);
}

interface Gathered {
  /** Returns false when nothing more need be read. Throws `BodyError`. */
  take(chunk: Uint8Array): boolean;
  whole(): Buffer;
}

function gather({ bytesMax, held, isWanted }: Omit<WholeBodyOptions, 'spanMs'>): Gathered {
  const chunks: Uint8Array[] = [];
  let total = 0;
  return {
    take(chunk) {
      total += chunk.length;
      if (total > bytesMax) throw new BodyError('body-too-large', `The body takes more than ${bytesMax} bytes`);
      const refusal = held.grow(chunk.length + BODY_CHUNK_HELD_BYTES);
      if (refusal !== null) {
        throw new BodyError(refusal.status === 429 ? 'body-of-caller-held' : 'body-of-all-held', refusal.text);
      }
      chunks.push(chunk);
      return isWanted(chunk);
    },
    // A copy: what arrived is a part of a larger buffer.
    whole: () => Buffer.concat(chunks, total),
  };
}

/** Takes what has arrived of a complete body. */
function arrived(request: IncomingMessage): Buffer {
  const bytes: unknown = request.read();
  if (bytes === null) return Buffer.alloc(0);
  if (!(bytes instanceof Buffer)) throw new TypeError('A request body is read as bytes');
  return bytes;
}

function readArrived(request: IncomingMessage, options: WholeBodyOptions): Buffer {
  const gathered = gather(options);
  const bytes = arrived(request);
  if (bytes.length > 0) gathered.take(bytes);
  return gathered.whole();
}

async function inflateArrived(compressed: Buffer, encoding: string, options: WholeBodyOptions): Promise<Buffer> {
  const inflated = compressed.length > GZIP_AT_ONCE_BYTES_MAX ? null : inflateAtOnce(compressed);
  if (inflated === null) return readWhole(inflate(once(compressed), encoding), options);
  const gathered = gather(options);
  gathered.take(inflated);
  return gathered.whole();
}

/** Returns null for what becomes too large. */
function inflateAtOnce(compressed: Buffer): Buffer | null {
  try {
    return gunzipSync(compressed, { maxOutputLength: INFLATED_AT_ONCE_BYTES_MAX });
  } catch (cause) {
    if (cause instanceof RangeError && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') return null;
    throw brokenGzip(cause);
  }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer, void, undefined> {
  yield bytes;
}

/**
 * Reads a plain body while it arrives. Stopping early must not destroy the request: the answer uses the same socket.
 */
function readArriving(request: IncomingMessage, idleMs: number, options: WholeBodyOptions): Promise<Buffer> {
  const { socket } = request;
  const gathered = gather(options);
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      socket.setTimeout(0);
      request.off('data', taken).off('end', ended).off('error', failed).off('close', closed);
    };
    const ended = (): void => {
      settle();
      resolve(gathered.whole());
    };
    const failed = (error: unknown): void => {
      settle();
      request.pause();
      reject(error);
    };
    const taken = (chunk: Buffer): void => {
      try {
        if (gathered.take(chunk)) return;
      } catch (error) {
        failed(error);
        return;
      }
      request.pause();
      ended();
    };
    const closed = (): void => failed(request.errored ?? new Error('The request closed before its body was complete'));
    const timer = setTimeout(() => failed(tooSlow()), options.spanMs);
    if (request.destroyed) {
      closed();
      return;
    }
    // Without a 'timeout' listener Node destroys the socket when the timeout passes (node:http, Event 'timeout'). Bytes
    // that arrive begin it again.
    socket.setTimeout(idleMs);
    request.on('data', taken).on('end', ended).on('error', failed).on('close', closed);
  });
}
