/**
 * Contents as JSON.
 *
 * Invariants: a file's content is sent as utf-8 only if its bytes are UTF-8 without NUL, else as base64, so that
 * the client recovers exactly the bytes. A large file is streamed as the same JSON, in constant memory.
 */
import type { z } from 'zod';
import { decodeUtf8, decodeUtf8Lossy } from '../../core/git/utf8.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import { bytesOf } from '../../core/use-cases/reading/list-tree.ts';
import type {
  Contents,
  FileContents,
  FolderContents,
  Place,
  SubmoduleContents,
  SymlinkContents,
} from '../../core/use-cases/reading/read-contents.ts';
import { encodePath } from '../front-door/request-target.ts';
import { paginationOf } from './schemas/common.ts';
import type { FILE, FOLDER, SUBMODULE, SYMLINK } from './schemas/contents.ts';

/**
 * Returns a path as text, and percent-encoded as well if its bytes are not UTF-8: each path of a request takes it so.
 * Its slashes stay.
 */
export function pathMembers(bytes: Uint8Array): { readonly path: string; readonly path_encoded?: string } {
  const text = decodeUtf8(bytes);
  return text === null ? { path: decodeUtf8Lossy(bytes), path_encoded: encodePath(bytes) } : { path: text };
}

/** Replaces bytes of names that are not UTF-8 by U+FFFD, since JSON holds only Unicode text. */
export function pathText({ names }: Pick<Place, 'names'>): string {
  return names.map(decodeUtf8Lossy).join('/');
}

interface NumberedPage {
  readonly page: number;
  readonly limit: number;
}

/**
 * The JSON of a folder, submodule or link. A file's JSON depends on whether its bytes are in memory or streamed. `page`
 * is the page of a folder's entries.
 */
export function contentsJson(contents: Exclude<Contents, FileContents>, page: NumberedPage): object {
  switch (contents.type) {
    case 'dir':
      return folderJson(contents, page);
    case 'submodule':
      return submoduleJson(contents);
    case 'symlink':
      return symlinkJson(contents);
  }
}

function folderJson({ place, entries }: FolderContents, page: NumberedPage): z.output<typeof FOLDER> {
  const location = placeJson(place);
  return {
    type: 'dir',
    ...location,
    entries: entries.items.map(({ name, mode, id, type, sizeBytes }) => {
      const path = pathMembers(bytesOf({ names: [...place.names, name] }));
      return { name: decodeUtf8Lossy(name), mode, sha: id, ...path, type, size: sizeBytes };
    }),
    pagination: paginationOf(page, entries.total),
  };
}

function symlinkJson({ id, mode, place, sizeBytes, target }: SymlinkContents): z.output<typeof SYMLINK> {
  const location = placeJson(place);
  const head = object(id, mode, location);
  return { type: 'symlink', ...head, size: sizeBytes, ...location, target: decodeUtf8Lossy(target) };
}

function submoduleJson({ id, mode, place }: SubmoduleContents): z.output<typeof SUBMODULE> {
  const location = placeJson(place);
  return { type: 'submodule', ...object(id, mode, location), size: null, ...location };
}

export function fileJson(file: FileContents, bytes: Uint8Array): z.output<typeof FILE> {
  const content = file.isText ? decodeUtf8Lossy(bytes) : bufferOf(bytes).toString('base64');
  return { ...fileHead(file), content };
}

/** Yields the text of `fileJson` in chunks. */
export async function* fileJsonChunks(
  file: FileContents,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const opening = JSON.stringify({ ...fileHead(file), content: '' } satisfies z.output<typeof FILE>);
  yield Buffer.from(opening.slice(0, -'"}'.length));
  yield* file.isText ? escapedText(chunks) : base64(chunks);
  yield Buffer.from('"}');
}

/** Returns a Buffer over the same memory, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function fileHead({ id, mode, place, sizeBytes, isText }: FileContents): Omit<z.output<typeof FILE>, 'content'> {
  const location = placeJson(place);
  const encoding = isText ? 'utf-8' : 'base64';
  return { type: 'file', ...object(id, mode, location), size: sizeBytes, ...location, encoding };
}

/** The path, ref and commit, if there is one, that every answer about contents holds. */
function placeJson({ names, ref, commit }: Place): {
  readonly path: string;
  readonly path_encoded?: string;
  readonly ref: string;
  readonly commit: ObjectId | null;
} {
  return { ...pathMembers(bytesOf({ names })), ref, commit };
}

function object(
  id: ObjectId,
  mode: string,
  { path }: { readonly path: string },
): { name: string; mode: string; sha: ObjectId } {
  return { name: path.slice(path.lastIndexOf('/') + 1), mode, sha: id };
}

async function* escapedText(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  for await (const chunk of chunks) {
    // The decoder emits a character that is split between two chunks with the second one.
    const text = JSON.stringify(decoder.decode(chunk, { stream: true })).slice(1, -1);
    if (text !== '') yield Buffer.from(text);
  }
}

async function* base64(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    // Three bytes make four characters, so a chunk is cut to a multiple of three: only the last one may be padded.
    const end = bytes.length - (bytes.length % 3);
    rest = bytes.subarray(end);
    if (end > 0) yield Buffer.from(bytes.toString('base64', 0, end));
  }
  if (rest.length > 0) yield Buffer.from(Buffer.from(rest).toString('base64'));
}
