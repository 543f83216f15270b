/**
 * Reads a form that is sent in parts (RFC 7578), as browsers send files and long texts.
 *
 * Invariants: the bytes of a part are those that were sent, with a byte order mark. How many parts a form has is
 * bounded, and what each says of itself; how many bytes it has is bounded where its body is read.
 */
import { Busboy, type BusboyFileStream } from '@fastify/busboy';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import { KIB } from '../../../core/kernel/byte-units.ts';
import { type Fields, fieldsFrom, type SentFile } from './forms.ts';

/** Parts of a form: its fields, and each of its files. */
export const FORM_PARTS_MAX = 1_000;
/** What a part says of itself: the name of its field and that of its file. Internal: browsers send a few lines. */
const HEADER_BYTES_MAX = 16 * KIB;
const HEADERS_MAX = 16;

/** The body is no form in parts, or one of too many. */
export class UnreadableParts extends Error {
  override readonly name = 'UnreadableParts';
  readonly statusCode = 400;
}

interface Part {
  readonly name: string;
  /** Null for a part that is no file. */
  readonly file: string | null;
  readonly chunks: Uint8Array[];
}

export async function readParts(contentType: string, body: Uint8Array): Promise<Fields> {
  const parts = await partsOf(contentType, body);
  const texts = Map.groupBy(
    parts.filter(({ file }) => file === null),
    ({ name }) => name,
  );
  const files = Map.groupBy(
    parts.filter(({ file }) => file !== null),
    ({ name }) => name,
  );
  return fieldsFrom(
    (name) => (texts.get(name) ?? []).map(({ chunks }) => decodeUtf8Lossy(Buffer.concat(chunks))),
    (name) => (files.get(name) ?? []).map(fileOf),
  );
}

function fileOf({ file, chunks }: Part): SentFile {
  // Browsers escape these characters of a name (HTML, "escape a multipart form data name").
  const name = (file ?? '').replaceAll('%22', '"').replaceAll(/%0A/gi, '\n').replaceAll(/%0D/gi, '\r');
  return { name, bytes: Buffer.concat(chunks) };
}

function partsOf(contentType: string, body: Uint8Array): Promise<readonly Part[]> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new UnreadableParts());
    const parts: Part[] = [];
    const take = (name: string | undefined, stream: BusboyFileStream, file: string | undefined): void => {
      const part: Part = { name: name ?? '', file: file ?? null, chunks: [] };
      parts.push(part);
      stream.on('data', (chunk: Uint8Array) => part.chunks.push(chunk)).on('error', fail);
    };
    try {
      const limits = { parts: FORM_PARTS_MAX, headerPairs: HEADERS_MAX, headerSize: HEADER_BYTES_MAX };
      // The parser would decode fields, and drop their byte order marks.
      const parser = new Busboy({ headers: { 'content-type': contentType }, limits, isPartAFile: () => true });
      parser.on('file', take);
      parser.on('partsLimit', fail).on('error', fail);
      parser.on('finish', () => resolve(parts));
      parser.end(body);
    } catch {
      // It has no boundary.
      fail();
    }
  });
}
