/**
 * Reads the bytes of one object as a stream that survives broken connections.
 *
 * Invariants: all bytes come from one version of the object, by its ETag. A bucket that stops in the middle, and a
 * reader that stops reading, hold a connection for a bounded time; the read goes on over a new one. An answer need not
 * name its length: then the bytes count that arrive before its end.
 */
import type { Readable } from 'node:stream';
import { GetObjectCommand, type GetObjectCommandOutput } from '@aws-sdk/client-s3';
import type { ByteRange } from '../../core/ports/layer-store.ts';
import { failureOf, isPassing, S3Failure } from './failures.ts';
import { repeatable, type Sender } from './requests.ts';

/** Connections after the first that may break within one read of a layer. */
export const S3_READ_RESUMES_MAX = 10;

export interface StoredObject {
  readonly sender: Sender;
  readonly at: { readonly Bucket: string; readonly Key: string };
  readonly stalledMs: number;
}

/** The bytes of an object from `at` to `end`, over one connection. */
interface OpenAnswer {
  readonly body: Readable;
  readonly etag: string | undefined;
  readonly at: number;
  /** `UNKNOWN` if the answer does not say. */
  readonly end: number;
  /** The size of the whole object, where the answer names it. */
  readonly total: number | null;
}

/** Where an object ends whose answer names no length. */
const UNKNOWN = Number.POSITIVE_INFINITY;

/** Resolves when the first bytes are on their way. Rejects with an `S3Failure`, as the stream does. */
export async function openRead(object: StoredObject, range?: ByteRange): Promise<AsyncGenerator<Uint8Array>> {
  const answer = await request(object, range);
  const lease = createLease(answer.body, object.stalledMs);
  return resuming(object, answer, lease);
}

/** Returns the size of an object whose head does not name it. */
export async function sizeByRange(object: StoredObject): Promise<number> {
  const { body, total } = await request(object, { start: 0, end: 1 });
  body.destroy();
  if (total === null) throw new S3Failure('not-s3', 'The bucket names no size of an object');
  return total;
}

async function request(object: StoredObject, range?: ByteRange, etag?: string): Promise<OpenAnswer> {
  const output = await repeatable(object.sender, 'GetObject', (client) =>
    client.send(
      new GetObjectCommand({
        ...object.at,
        ...(range === undefined ? {} : { Range: `bytes=${range.start}-${range.end === UNKNOWN ? '' : range.end - 1}` }),
        ...(etag === undefined ? {} : { IfMatch: etag }),
      }),
    ),
  );
  return openAnswer(output, range);
}

function openAnswer(output: GetObjectCommandOutput, range?: ByteRange): OpenAnswer {
  const { Body: body, ContentLength: length, ContentRange: contentRange = '' } = output;
  if (body === undefined || !('destroy' in body)) throw new S3Failure('not-s3', 'The answer to GetObject has no body');
  const start = range?.start ?? 0;
  const [, first, last, size = ''] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(contentRange) ?? [];
  const named = last === undefined ? UNKNOWN : Number(last) + 1;
  const end = length === undefined ? named : start + length;
  if (range !== undefined && (Number(first) !== start || end > range.end)) {
    body.destroy();
    throw new S3Failure('not-s3', 'The answer to GetObject has another range than was asked for');
  }
  return { body, etag: output.ETag, at: start, end, total: /^\d+$/.test(size) ? Number(size) : null };
}

/** Gives a connection back that its reader does not use. */
interface Lease {
  isOver: boolean;
  start(): void;
  stop(): void;
}

function createLease(body: Readable, spanMs: number): Lease {
  const end = (): void => {
    lease.isOver = true;
    body.destroy();
  };
  let timer = setTimeout(end, spanMs);
  const lease: Lease = {
    isOver: false,
    start: () => {
      timer = setTimeout(end, spanMs);
    },
    stop: () => clearTimeout(timer),
  };
  return lease;
}

async function* resuming(object: StoredObject, first: OpenAnswer, firstLease: Lease): AsyncGenerator<Uint8Array> {
  let [answer, lease] = [first, firstLease];
  let { at, end } = first;
  const { etag } = first;
  let resumes = 0;
  try {
    for (;;) {
      try {
        for await (const chunk of timed(answer.body, lease, object.stalledMs)) {
          at += chunk.length;
          if (at > end) throw new S3Failure('not-s3', 'The answer to GetObject is longer than it says');
          lease.start();
          yield chunk;
          lease.stop();
        }
        if (at === end || end === UNKNOWN) return;
        throw new S3Failure('unreachable', `The bucket's answer ended at byte ${at} of ${end}`);
      } catch (error) {
        lease.stop();
        const failure = failureOf('GetObject', error);
        if (at === end) return;
        if (!lease.isOver) resumes += 1;
        if (!lease.isOver && (!isPassing(failure) || resumes > S3_READ_RESUMES_MAX)) throw failure;
      }
      answer.body.destroy();
      const next = await resume(object, { start: at, end }, etag);
      if (next === null) return;
      answer = next;
      if (end === UNKNOWN) end = answer.total ?? answer.end;
      lease = createLease(answer.body, object.stalledMs);
    }
  } finally {
    lease.stop();
    answer.body.destroy();
  }
}

/** Returns null if all bytes had arrived, which is found out only here where no answer named the length. */
async function resume(object: StoredObject, range: ByteRange, etag: string | undefined): Promise<OpenAnswer | null> {
  let answer: OpenAnswer;
  try {
    answer = await request(object, range, etag);
  } catch (error) {
    const failure = failureOf('GetObject', error);
    // The condition held before the range was looked at, so that this version has no byte after those that arrived.
    if (failure.code === 'range-not-satisfiable' && range.end === UNKNOWN && etag !== undefined) return null;
    // A failed condition, or a shorter object.
    if (failure.code !== 'object-there-already' && failure.code !== 'range-not-satisfiable') throw failure;
    throw replaced();
  }
  if (etag === undefined || answer.etag === undefined || answer.etag === etag) return answer;
  // The bucket ignores the condition.
  answer.body.destroy();
  throw replaced();
}

function replaced(): S3Failure {
  return new S3Failure('object-altered', 'The object was replaced while it was read');
}

/** The chunks of a body; fails if none arrives within the span. */
async function* timed(body: Readable, lease: Lease, spanMs: number): AsyncGenerator<Buffer> {
  lease.stop();
  const stalled = (): void => {
    body.destroy(new S3Failure('timed-out', 'The bucket stopped sending in the middle of a layer'));
  };
  let timer = setTimeout(stalled, spanMs);
  try {
    for await (const chunk of body) {
      clearTimeout(timer);
      if (!Buffer.isBuffer(chunk)) throw new TypeError('A body of bytes has another chunk');
      yield chunk;
      timer = setTimeout(stalled, spanMs);
    }
  } finally {
    clearTimeout(timer);
  }
}
