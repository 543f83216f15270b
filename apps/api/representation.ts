/**
 * Answers a request with a representation of a resource: all of it, a range, 304, or only the headers.
 *
 * Invariants: bytes are counted as they are sent. A streamed representation is closed however its answer ends.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { ReaderTooSlow } from '../../core/kernel/reader-too-slow.ts';
import type { ByteRange } from '../../core/ports/layer-store.ts';
import { noneMatchNames } from '../front-door/conditional.ts';
import { requestedRange } from '../front-door/ranges.ts';
import { type ReaderPace, watchPace } from '../front-door/reader-pace.ts';
import type { EncodedBody } from './body-cache.ts';
import { type Answer, type AnswerBody, type Headers, notModified, problem } from './http/answer.ts';

/** A representation too large to hold in memory: its bytes are sent as they are read. */
export interface StreamedBody {
  readonly etag: string;
  readonly headers: Headers;
  /** Null if the size is unknown until all bytes are made; such a body has no ranges. */
  readonly sizeBytes: number | null;
  readonly chunks: (range: ByteRange | null) => AsyncIterable<Uint8Array>;
  readonly close: () => void;
}

export type Representation = EncodedBody | StreamedBody;

export interface Sending {
  /** Whether ranges are honoured (RFC 9110, section 14). */
  readonly withRanges: boolean;
  /** Called once with the number of body bytes sent; not called for an answer without a body. */
  readonly onSent: (sentBytes: number) => void;
  /** A client that reads a stream more slowly is disconnected. */
  readonly pace?: ReaderPace;
}

export function answerWith(request: IncomingMessage, body: Representation, sending: Sending): Answer {
  const answer = select(request, body, sending);
  if (answer.body.kind !== 'stream' && 'close' in body) body.close();
  return answer;
}

function select(request: IncomingMessage, body: Representation, sending: Sending): Answer {
  const { headers, etag } = body;
  if (noneMatchNames(request.headers['if-none-match'], etag)) return notModified(headers);
  const sizeBytes = 'bytes' in body ? body.bytes.length : body.sizeBytes;
  if (request.method === 'HEAD' || sizeBytes === null || !sending.withRanges) {
    return whole(request, body, sizeBytes, sending);
  }
  const range = requestedRange(request.headers, etag, sizeBytes);
  switch (range.kind) {
    case 'whole':
      return whole(request, body, sizeBytes, sending);
    case 'unsatisfiable':
      return problem(416, 'The range lies outside the file', { 'content-range': `bytes */${sizeBytes}` });
    case 'part': {
      const { start, end } = range;
      const partHeaders = {
        ...headers,
        'content-range': `bytes ${start}-${end - 1}/${sizeBytes}`,
        'content-length': String(end - start),
      };
      return { status: 206, headers: partHeaders, body: part(body, { start, end }, sending) };
    }
  }
}

function whole(request: IncomingMessage, body: Representation, sizeBytes: number | null, sending: Sending): Answer {
  const headers = sizeBytes === null ? body.headers : { ...body.headers, 'content-length': String(sizeBytes) };
  if (request.method === 'HEAD') return { status: 200, headers, body: { kind: 'none' } };
  return { status: 200, headers, body: part(body, null, sending) };
}

function part(body: Representation, range: ByteRange | null, { onSent, pace }: Sending): AnswerBody {
  if ('bytes' in body) {
    const bytes = range === null ? body.bytes : body.bytes.subarray(range.start, range.end);
    onSent(bytes.length);
    return { kind: 'bytes', bytes };
  }
  const counter = { bytes: 0 };
  const chunks = counted(body.chunks(range), counter);
  const watched = pace === undefined ? chunks : watchPace(chunks, pace, () => stream.destroy(new ReaderTooSlow()));
  const stream = Readable.from(watched, { objectMode: false });
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', () => {
    onSent(counter.bytes);
    body.close();
  });
  return { kind: 'stream', stream };
}

async function* counted(chunks: AsyncIterable<Uint8Array>, counter: { bytes: number }): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    counter.bytes += chunk.length;
    yield chunk;
  }
}
