/**
 * Reads a Git client's request body as plain bytes.
 *
 * Invariants: a body that stays silent for `idleMs` ends its connection, while the server waits for it: while the
 * server itself is slow, the client may be silent, and its pace does not count.
 */
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { CodedError } from '../../core/kernel/coded-error.ts';
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
export class BodyError extends CodedError<BodyErrorCode> {
  override readonly name = 'BodyError';
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

/** The coding of a body's bytes, in lower case. */
export function encodingOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return (headers['content-encoding'] ?? 'identity').trim().toLowerCase();
}

export function isGzip(encoding: string): boolean {
  return encoding === 'gzip' || encoding === 'x-gzip';
}

/** Opens the body, inflating gzip (git compresses requests over 1 KiB). */
export function openBody(request: IncomingMessage, { idleMs, pace = NO_PACE }: BodyOptions): Body {
  const encoding = encodingOf(request);
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

export function brokenGzip(cause: unknown): BodyError {
  return new BodyError('body-broken', 'The body is not valid gzip, or ended early', { cause });
}

export async function* inflate(
  wire: AsyncIterable<Buffer>,
  encoding: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!isGzip(encoding)) {
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
    throw brokenGzip(cause);
  } finally {
    inflated.destroy();
  }
}
