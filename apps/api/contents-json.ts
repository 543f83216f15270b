/**
 * Contents as JSON.
 *
 * Must stay true: a file's text is given as utf-8 only if its bytes are UTF-8 without NUL, else as base64; both
 * give back exactly the bytes. The streamed form of a large file is the same JSON, in constant memory.
 */
import type { z } from 'zod';
import { decodeUtf8, decodeUtf8Lossy } from '../../core/git/utf8.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import { SYMLINK_TARGET_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { ObjectReader } from '../../core/ports/object-database.ts';
import { type ContentsPath, entrySizes, entryType, type Located } from '../../core/use-cases/reading/locate.ts';
import type { FILE, FOLDER, SUBMODULE, SYMLINK } from './schemas/contents.ts';

type LocatedFile = Extract<Located, { type: 'file' | 'symlink' }>;
type LocatedFolder = Extract<Located, { type: 'dir' }>;
type LocatedSubmodule = Extract<Located, { type: 'submodule' }>;

/** Where something was found, as every answer repeats it. */
export interface Place {
  readonly path: string;
  readonly ref: string;
  readonly commit: ObjectId;
}

/** Names that are not UTF-8 are shown with U+FFFD: JSON has no other way. */
export function pathText({ names }: ContentsPath): string {
  return names.map(decodeUtf8Lossy).join('/');
}

export async function folderJson(
  reader: ObjectReader,
  { entries }: LocatedFolder,
  place: Place,
): Promise<z.output<typeof FOLDER>> {
  const sizes = await entrySizes(reader, entries);
  return {
    type: 'dir',
    ...place,
    entries: entries.map(({ name, mode, id }, index) => {
      const text = decodeUtf8Lossy(name);
      const path = place.path === '' ? text : `${place.path}/${text}`;
      return { name: text, mode, sha: id, path, type: entryType(mode), size: sizes[index] ?? null };
    }),
  };
}

export async function symlinkJson(
  reader: ObjectReader,
  { id, mode, sizeBytes }: LocatedFile,
  place: Place,
): Promise<z.output<typeof SYMLINK>> {
  const target = await readBytes(reader, id, Math.min(sizeBytes, SYMLINK_TARGET_BYTES_MAX));
  return { type: 'symlink', ...object(id, mode, place), size: sizeBytes, ...place, target: decodeUtf8Lossy(target) };
}

export function submoduleJson({ id, mode }: LocatedSubmodule, place: Place): z.output<typeof SUBMODULE> {
  return { type: 'submodule', ...object(id, mode, place), size: null, ...place };
}

export async function fileJson(
  reader: ObjectReader,
  { id, mode, sizeBytes }: LocatedFile,
  place: Place,
): Promise<z.output<typeof FILE>> {
  const bytes = await readBytes(reader, id, sizeBytes);
  const text = bytes.includes(0) ? null : decodeUtf8(bytes);
  const head = { type: 'file', ...object(id, mode, place), size: sizeBytes, ...place } as const;
  return text === null
    ? { ...head, encoding: 'base64', content: bytes.toString('base64') }
    : { ...head, encoding: 'utf-8', content: text };
}

/** As the text of `fileJson`, in pieces. The file is read twice: its encoding is known only at its end. */
export async function fileJsonChunks(
  reader: ObjectReader,
  { id, mode, sizeBytes }: LocatedFile,
  place: Place,
): Promise<() => AsyncIterable<Uint8Array>> {
  const encoding = (await isText(reader.blob(id))) ? 'utf-8' : 'base64';
  const head = { type: 'file', ...object(id, mode, place), size: sizeBytes, ...place, encoding, content: '' } as const;
  const opening = JSON.stringify(head satisfies z.output<typeof FILE>).slice(0, -'"}'.length);
  return async function* () {
    yield Buffer.from(opening);
    yield* encoding === 'utf-8' ? escapedText(reader.blob(id)) : base64(reader.blob(id));
    yield Buffer.from('"}');
  };
}

function object(id: ObjectId, mode: string, { path }: Place): { name: string; mode: string; sha: ObjectId } {
  return { name: path.slice(path.lastIndexOf('/') + 1), mode, sha: id };
}

/** The first `sizeBytes` bytes of a blob. */
export async function readBytes(reader: ObjectReader, id: ObjectId, sizeBytes: number): Promise<Buffer> {
  if (sizeBytes === 0) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  for await (const chunk of reader.blob(id, { start: 0, end: sizeBytes })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function isText(chunks: AsyncIterable<Uint8Array>): Promise<boolean> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    for await (const chunk of chunks) {
      if (chunk.includes(0)) return false;
      decoder.decode(chunk, { stream: true });
    }
    decoder.decode();
    return true;
  } catch (error) {
    if (error instanceof TypeError && 'code' in error && error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      return false;
    throw error;
  }
}

async function* escapedText(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  for await (const chunk of chunks) {
    // A character split between two chunks comes out whole with the second.
    const text = JSON.stringify(decoder.decode(chunk, { stream: true })).slice(1, -1);
    if (text !== '') yield Buffer.from(text);
  }
}

async function* base64(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    // Three bytes make four characters: only the last piece may be padded.
    const end = bytes.length - (bytes.length % 3);
    rest = bytes.subarray(end);
    if (end > 0) yield Buffer.from(bytes.toString('base64', 0, end));
  }
  if (rest.length > 0) yield Buffer.from(Buffer.from(rest).toString('base64'));
}
