/**
 * Reads a Git client's request body as plain bytes.
 *
 * Must stay true: a body that stays silent for `idleMs` ends its connection, while the server waits for it: while the
 * server itself is slow, the client may be silent, and its pace does not count. `readWhole` bounds a body after
 * inflation, in bytes and in time.
 */
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { BODY_CHUNK_HELD_BYTES } from '../../core/kernel/limits.ts';
import { LATE_BODY_TEXT } from '../front-door/body-span.ts';
import type { Held } from '../front-door/held-bytes.ts';
import { GitHttpError } from './answer.ts';

export type BodyErrorCode =
  | 'body-encoding-unknown'
  | 'body-too-large'
  | 'body-broken'
  | 'body-too-slow'
  /** No memory is left for it: the caller's, or that of all. */
  | 'body-of-caller-held'
  | 'body-of-all-held';

/** The server does not accept the body; the message is sent to the client. */
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
  /** Bytes received over the wire so far. */
  readonly receivedBytes: () => number;
  /**
   * Stops the reading of `bytes`, then reads and discards the rest of the body, so that git reads the answer instead of
   * failing on a broken pipe. Resolves false when more than `bytesMax` were left: the caller must close the connection.
   */
  discardRest(bytesMax: number): Promise<boolean>;
}

/** Judges how fast the client sends. */
export interface BodyPace {
  /** Called when the server begins to wait for the client. */
  asks(): void;
  /** Called with what arrived. Throws the error for a client that is too slow. */
  gets(bytes: number): void;
  /** Whether it has thrown: then the rest is not waited for. */
  isCut(): boolean;
}

const NO_PACE: BodyPace = { asks: () => undefined, gets: () => undefined, isCut: () => false };

export interface BodyOptions {
  /** A silence of this length ends the connection. */
  readonly idleMs: number;
  readonly pace?: BodyPace;
}

/** Opens the body, inflating gzip (git compresses requests over 1 KiB). */
export function openBody(request: IncomingMessage, { idleMs, pace = NO_PACE }: BodyOptions): Body {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const counter = { bytes: 0 };
  const read = () => counted(request, { idleMs, pace }, counter);
  const wire = read();
  const bytes = encoding === 'identity' ? wire : inflate(wire, encoding);
  return {
    bytes,
    receivedBytes: () => counter.bytes,
    async discardRest(bytesMax) {
      // A suspended generator keeps the request paused, so a second reader would get nothing.
      await bytes.return();
      if (pace.isCut()) return false;
      const end = counter.bytes + bytesMax;
      try {
        for await (const _ of read()) {
          if (counter.bytes > end) return false;
        }
      } catch (error) {
        if (pace.isCut()) return false;
        // The client closed the connection: there is nobody to answer, and the request did not fail.
        if (!request.destroyed) throw error;
      }
      return true;
    },
  };
}

/** Leaving the loop early must not destroy the request: the answer uses the same socket. */
async function* counted(
  request: IncomingMessage,
  { idleMs, pace }: Required<BodyOptions>,
  counter: { bytes: number },
): AsyncGenerator<Buffer, void, undefined> {
  const { socket } = request;
  // Without a 'timeout' listener Node destroys the socket when the timeout passes (node:http, Event 'timeout').
  socket.setTimeout(idleMs);
  pace.asks();
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!(chunk instanceof Buffer)) throw new TypeError('A request body is read as bytes');
    counter.bytes += chunk.length;
    // Until it asks for more, the server works, and the client may be silent.
    socket.setTimeout(0);
    pace.gets(chunk.length);
    yield chunk;
    socket.setTimeout(idleMs);
    pace.asks();
  }
  socket.setTimeout(0);
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
  // A failure of the pipeline also makes `inflated` throw, in the loop below.
  pumping.catch(() => undefined);
  try {
    yield* inflated;
  } catch (cause) {
    if (cause instanceof GitHttpError) throw cause;
    throw new BodyError('body-broken', 'The body is not valid gzip, or ended early', { cause });
  } finally {
    inflated.destroy();
  }
}

export interface WholeBodyOptions {
  readonly bytesMax: number;
  readonly spanMs: number;
  /** Counts what is read; its owner releases it. */
  readonly held: Pick<Held, 'grow'>;
  /** Returns false when nothing more need be read, since what was read is wrong already. */
  readonly isWanted: (chunk: Uint8Array) => boolean;
}

/**
 * Resolves to the whole body, or to what came until it was not wanted any more. Throws `BodyError`: `body-too-large`
 * beyond `bytesMax`, `body-too-slow` after `spanMs`, and `body-of-…-held` when there is no memory for it.
 */
export async function readWhole(bytes: AsyncIterable<Uint8Array>, options: WholeBodyOptions): Promise<Buffer> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  // A body that arrives in time leaves it pending.
  late.catch(() => undefined);
  const timer = setTimeout(() => reject(new BodyError('body-too-slow', LATE_BODY_TEXT)), options.spanMs);
  const chunks = bytes[Symbol.asyncIterator]();
  try {
    return await collect({ next: () => Promise.race([chunks.next(), late]) }, options);
  } finally {
    clearTimeout(timer);
    // It may wait for bytes until the connection ends.
    chunks.return?.()?.catch(() => undefined);
  }
}

async function collect(
  { next }: Pick<AsyncIterator<Uint8Array>, 'next'>,
  { bytesMax, held, isWanted }: WholeBodyOptions,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for (let read = await next(); read.done !== true; read = await next()) {
    const chunk = read.value;
    total += chunk.length;
    if (total > bytesMax) throw new BodyError('body-too-large', `The body takes more than ${bytesMax} bytes`);
    const refusal = held.grow(chunk.length + BODY_CHUNK_HELD_BYTES);
    if (refusal !== null) {
      throw new BodyError(refusal.status === 429 ? 'body-of-caller-held' : 'body-of-all-held', refusal.text);
    }
    chunks.push(chunk);
    if (!isWanted(chunk)) break;
  }
  return chunks.length === 1 && chunks[0] !== undefined ? Buffer.from(chunks[0]) : Buffer.concat(chunks, total);
}
