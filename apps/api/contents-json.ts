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
  FolderEntry,
  Place,
  SubmoduleContents,
  SymlinkContents,
} from '../../core/use-cases/reading/read-contents.ts';
import type { BlobContents } from '../../core/use-cases/reading/read-object.ts';
import { encodePath } from '../front-door/request-target.ts';
import { paginationOf } from './schemas/common.ts';
import type { FILE, FOLDER, SUBMODULE, SYMLINK } from './schemas/contents.ts';
import type { BLOB } from './schemas/objects.ts';

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
    entries: entries.items.map((entry) => entryJson(entry, bytesOf({ names: [...place.names, entry.name] }))),
    pagination: paginationOf(page, entries.total),
  };
}

export function entryJson(
  { name, mode, id, type, sizeBytes }: FolderEntry,
  path: Uint8Array,
): z.output<typeof FOLDER>['entries'][number] {
  return { name: decodeUtf8Lossy(name), mode, sha: id, ...pathMembers(path), type, size: sizeBytes };
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
  return { ...fileHead(file), content: contentOf(file, bytes) };
}

/** Yields the text of `fileJson` in chunks. */
export function fileJsonChunks(file: FileContents, chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return withContent({ ...fileHead(file), content: '' } satisfies z.output<typeof FILE>, file, chunks);
}

export function blobJson(blob: BlobContents, bytes: Uint8Array): z.output<typeof BLOB> {
  return { ...blobHead(blob), content: contentOf(blob, bytes) };
}

/** Yields the text of `blobJson` in chunks. */
export function blobJsonChunks(blob: BlobContents, chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return withContent({ ...blobHead(blob), content: '' } satisfies z.output<typeof BLOB>, blob, chunks);
}

interface Judged {
  readonly isText: boolean;
}

function contentOf({ isText }: Judged, bytes: Uint8Array): string {
  return isText ? decodeUtf8Lossy(bytes) : bufferOf(bytes).toString('base64');
}

/** `empty` ends with a content that is empty. */
async function* withContent(
  empty: object,
  { isText }: Judged,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify(empty).slice(0, -'"}'.length));
  yield* isText ? escapedText(chunks) : base64(chunks);
  yield Buffer.from('"}');
}

/** Returns a Buffer over the same memory, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function fileHead({ id, mode, place, sizeBytes, isText }: FileContents): Omit<z.output<typeof FILE>, 'content'> {
  const location = placeJson(place);
  return { type: 'file', ...object(id, mode, location), size: sizeBytes, ...location, encoding: encodingOf(isText) };
}

function blobHead({ id, sizeBytes, isText }: BlobContents): Omit<z.output<typeof BLOB>, 'content'> {
  return { sha: id, size: sizeBytes, encoding: encodingOf(isText) };
}

function encodingOf(isText: boolean): 'utf-8' | 'base64' {
  return isText ? 'utf-8' : 'base64';
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
