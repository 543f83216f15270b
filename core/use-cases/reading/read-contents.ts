/**
 * Reads the contents of a repository at one of its commits, or at what a tag leads to: folders, files, symbolic links
 * and submodules.
 *
 * Invariants: a large file is streamed in constant memory, and the repository's objects stay open until the reader
 * of the stream closes it. On every other exit this file closes them.
 */
import type { TreeEntry } from '../../git/objects.ts';
import { isUtf8Text } from '../../git/utf8.ts';
import { MIB } from '../../kernel/byte-units.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ByteRange } from '../../ports/layer-store.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import {
  type ContentsPath,
  type EntryType,
  entriesOfFolder,
  entrySizes,
  entryType,
  type FoundEntry,
  findAtRef,
} from './entry-at-path.ts';
import { type ObjectsContext, openView } from './repository-view.ts';

/** Names and paths of the entries on one page of a folder over REST. Each byte may take six in JSON. */
export const CONTENTS_NAMES_BYTES_MAX = 2 * MIB;
/**
 * Files up to this size are read whole and may be cached in memory; larger ones are streamed. Internal: both ways send
 * the same bytes.
 */
export const CONTENTS_BUFFERED_BYTES_MAX = MIB;
/** How much of a symbolic link's target is returned: Linux's PATH_MAX, beyond which no checkout can create the link. */
export const SYMLINK_TARGET_BYTES_MAX = 4_096;

export interface WantedContents {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** Null for a text that cannot name anything in a tree. */
  readonly path: ContentsPath | null;
}

export interface Place {
  /** From the root down, as bytes: names need not be UTF-8. Empty for the root, and for the blob of a tag. */
  readonly names: ContentsPath['names'];
  /** The ref that the caller named, or the short name of the default branch. */
  readonly ref: string;
  /** Null where a tag leads to a tree or a blob. */
  readonly commit: ObjectId | null;
}

export interface FolderEntry extends TreeEntry {
  readonly type: EntryType;
  /** Null for folders and submodules. */
  readonly sizeBytes: number | null;
}

export interface FolderContents {
  readonly type: 'dir';
  readonly place: Place;
  readonly id: ObjectId;
  /** In the order of Git's trees: by bytes, folders as if their names ended in a slash. */
  readonly entries: PageOf<FolderEntry>;
}

/** The bytes of a file, either in memory or read on demand. */
export type FileBytes =
  | { readonly kind: 'held'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'streamed';
      /** Reads the whole file, or a range of it. The caller may call it any number of times until it calls `close`. */
      readonly chunks: (range: ByteRange | null) => AsyncIterable<Uint8Array>;
      readonly close: () => void;
    };

export interface RawFile {
  readonly place: Place;
  readonly id: ObjectId;
  readonly sizeBytes: number;
  readonly content: FileBytes;
}

export interface FileContents extends RawFile {
  readonly type: 'file';
  readonly mode: string;
  /** Whether the file is UTF-8 without NUL. */
  readonly isText: boolean;
}

export interface SymlinkContents {
  readonly type: 'symlink';
  readonly place: Place;
  readonly id: ObjectId;
  readonly mode: string;
  readonly sizeBytes: number;
  /** The target as stored in the link, cut to `SYMLINK_TARGET_BYTES_MAX`. The link is not followed. */
  readonly target: Uint8Array;
}

export interface SubmoduleContents {
  readonly type: 'submodule';
  readonly place: Place;
  /** The id of a commit of another repository. */
  readonly id: ObjectId;
  readonly mode: string;
}

export type Contents = FolderContents | FileContents | SymlinkContents | SubmoduleContents;

type Refused = { readonly refused: Refusal };

/**
 * Reads what is at a path. For a folder it returns a page of the entries. Refused with `repository-without-commits`,
 * `ref-not-found`, `path-not-found`, `file-too-large` or `folder-names-too-long`.
 */
export function readContents(
  context: ObjectsContext,
  repository: FoundRepository,
  wanted: WantedContents & {
    readonly entries: Page;
    /** Whether a file that is streamed is read to its end, to say whether it is text; else it is said not to be. */
    readonly judgeStreamed: boolean;
  },
): Promise<Contents | Refused> {
  return readAt(context, repository, wanted, (found) => contentsOf(found, wanted));
}

/** Reads the bytes of a file, or of a link's own text. Refused as `readContents` is, and with `path-not-a-file`. */
export function readFile(
  context: ObjectsContext,
  repository: FoundRepository,
  wanted: WantedContents,
): Promise<RawFile | Refused> {
  return readAt(context, repository, wanted, async (found) => {
    const { located } = found;
    if (located.type === 'dir' || located.type === 'submodule') return refuse({ code: 'path-not-a-file' });
    return rawFile(found, located);
  });
}

/** What was found at a place. The repository's objects are open until `close`. */
interface Found {
  readonly reader: ObjectReader;
  readonly located: FoundEntry;
  readonly place: Place;
  readonly close: () => void;
}

async function readAt<Result extends Contents | RawFile | Refused>(
  context: ObjectsContext,
  repository: FoundRepository,
  wanted: WantedContents,
  read: (found: Found) => Promise<Result>,
): Promise<Result | Refused> {
  const view = openView(context, repository);
  let isStreamed = false;
  try {
    const reader = await view.objects();
    const at = await findAtRef(repository, reader, wanted);
    if ('refused' in at) return at;
    const { resolved, path, located } = at;
    const place = {
      names: path.names,
      ref: resolved.name,
      commit: resolved.commit?.id ?? null,
    };
    const result = await read({ reader, located, place, close: () => view.close() });
    isStreamed = 'content' in result && result.content.kind === 'streamed';
    return result;
  } finally {
    if (!isStreamed) view.close();
  }
}

async function contentsOf(
  found: Found,
  { entries: page, judgeStreamed }: { readonly entries: Page; readonly judgeStreamed: boolean },
): Promise<Contents | Refused> {
  const { reader, located, place } = found;
  switch (located.type) {
    case 'dir':
      return folderOf(found, located.id, page);
    case 'submodule':
      return { type: 'submodule', place, id: located.id, mode: located.mode };
    case 'symlink': {
      const { id, mode, sizeBytes } = located;
      const target = await startOfBlob(reader, id, Math.min(sizeBytes, SYMLINK_TARGET_BYTES_MAX));
      return { type: 'symlink', place, id, mode, sizeBytes, target };
    }
    case 'file': {
      const raw = await rawFile(found, located);
      const { content } = raw;
      const isText = await isTextOf(content, judgeStreamed);
      return { type: 'file', mode: located.mode, isText, ...raw };
    }
  }
}

async function folderOf({ reader, place }: Found, id: ObjectId, page: Page): Promise<FolderContents | Refused> {
  const entries = await entriesOf(reader, id, page);
  // Each entry has its name and its path.
  const above = place.names.reduce((sum, name) => sum + name.length + 1, 0);
  const namesBytes = entries.items.reduce((sum, { name }) => sum + above + 2 * name.length, 0);
  if (namesBytes > CONTENTS_NAMES_BYTES_MAX) return refuse({ code: 'folder-names-too-long' });
  return { type: 'dir', place, id, entries };
}

/** A file that is streamed is read to its end, because only then it is known whether it is text. */
export async function isTextOf(content: FileBytes, judgeStreamed: boolean): Promise<boolean> {
  if (content.kind === 'held') return isUtf8Text([content.bytes]);
  return judgeStreamed && (await isUtf8Text(content.chunks(null)));
}

/** Returns a page of a folder's entries with their sizes. */
export async function entriesOf(reader: ObjectReader, folder: ObjectId, page: Page): Promise<PageOf<FolderEntry>> {
  const { items: entries, total } = await entriesOfFolder(reader, folder, page);
  const sizes = await entrySizes(reader, entries);
  const items = entries.map((entry, index): FolderEntry => {
    return { ...entry, type: entryType(entry.mode), sizeBytes: sizes[index] ?? null };
  });
  return { items, total };
}

async function rawFile(
  { reader, place, close }: Found,
  { id, sizeBytes }: { readonly id: ObjectId; readonly sizeBytes: number },
): Promise<RawFile> {
  return { place, id, sizeBytes, content: await bytesOfFile(reader, { id, sizeBytes }, close) };
}

/** `close` is for the reader of bytes that are streamed. */
export async function bytesOfFile(
  reader: ObjectReader,
  { id, sizeBytes }: { readonly id: ObjectId; readonly sizeBytes: number },
  close: () => void,
): Promise<FileBytes> {
  if (sizeBytes <= CONTENTS_BUFFERED_BYTES_MAX) {
    return { kind: 'held', bytes: await startOfBlob(reader, id, sizeBytes) };
  }
  const chunks = (range: ByteRange | null): AsyncIterable<Uint8Array> =>
    range === null ? reader.blob(id) : reader.blob(id, range);
  return { kind: 'streamed', chunks, close };
}

/** Copies the first bytes of a blob into memory of their own, because a chunk may keep a larger buffer in memory. */
async function startOfBlob(reader: ObjectReader, id: ObjectId, sizeBytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(sizeBytes);
  let length = 0;
  if (sizeBytes > 0) {
    for await (const chunk of reader.blob(id, { start: 0, end: sizeBytes })) {
      bytes.set(chunk, length);
      length += chunk.length;
    }
  }
  return bytes.subarray(0, length);
}
