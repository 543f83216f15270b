/**
 * Representations of the bytes of a file.
 *
 * Invariants: no browser runs content of a repository.
 */
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { FileBytes } from '../../core/use-cases/reading/read-contents.ts';
import { attachment } from '../front-door/disposition.ts';
import { bufferOf } from './contents-json.ts';
import { type Headers, JSON_TYPE } from './http/answer.ts';
import { VARYING } from './http/compression.ts';
import type { Representation } from './representation.ts';

interface NamedBytes {
  /** That of the downloaded file. */
  readonly name: string;
  readonly id: ObjectId;
  readonly sizeBytes: number;
  readonly content: FileBytes;
}

export function rawBody({ name, id, sizeBytes, content }: NamedBytes): Representation {
  const etag = `"${id}-r1"`;
  const headers: Headers = {
    ...commonHeaders(etag),
    'content-type': 'application/octet-stream',
    'content-disposition': attachment(name),
    // If a browser shows the file despite its type and disposition, nothing in it runs.
    'content-security-policy': "default-src 'none'; sandbox",
    'accept-ranges': 'bytes',
  };
  if (content.kind === 'held') return { etag, headers, bytes: bufferOf(content.bytes) };
  const { chunks, close } = content;
  return { etag, headers, sizeBytes, chunks, close };
}

/** JSON that holds the bytes: `whole` makes it of bytes in memory, `parts` of bytes that are read. */
export function jsonOfBytes(
  content: FileBytes,
  etag: string,
  whole: (bytes: Uint8Array) => object,
  parts: (chunks: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>,
): Representation {
  if (content.kind === 'held') return jsonBody(whole(content.bytes), etag);
  const { chunks, close } = content;
  return { etag, headers: jsonHeaders(etag), sizeBytes: null, chunks: () => parts(chunks(null)), close };
}

export function jsonBody(json: object, etag: string): Representation {
  return { etag, headers: jsonHeaders(etag), bytes: Buffer.from(JSON.stringify(json), 'utf8') };
}

function jsonHeaders(etag: string): Headers {
  return { ...commonHeaders(etag), 'content-type': JSON_TYPE, vary: `accept, ${VARYING}` };
}

/** Private caches may store the answer, must revalidate it at every use, and store JSON and raw bytes separately. */
function commonHeaders(etag: string): Headers {
  return { etag, 'cache-control': 'private, no-cache', vary: 'accept' };
}
