/**
 * Keeps pages of files that never change in bounded memory. Packs and large indexes are read through it.
 *
 * Invariants: a page holds the bytes at its place in its file; nobody writes into a buffer that was read.
 */
import { closeSync, createReadStream, fstatSync, openSync, readSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { type CountedCache, countedCache } from '../../../core/kernel/shown-caches.ts';
import { inOwnMemory } from './own-memory.ts';

export const PAGE_BYTES = 16 * 1024;
/**
 * Most pages of one file: the number of the file and that of a page together make one safe integer. Internal: no pack
 * has as many pages.
 */
const PAGES_MAX = 2 ** 26;
/**
 * Reading a file of this size that was just written takes less time than handing the read to another thread. Internal:
 * both ways give the same bytes.
 */
const FRESH_BYTES_MAX = 64 * 1024;
/** Longer reads are not kept. Internal: what is not kept is read again. */
const READ_KEPT_BYTES_MAX = 1024 * 1024;

const CHUNK_BYTES = 1024 * 1024;

export interface PagedFile {
  /** Changes when the file is renamed. */
  path: string;
  /** Its bytes, as long as they are not on the disk; changes with `path`. */
  held: (() => Buffer | null) | null;
  readonly sizeBytes: number;
  /** Unique in this process: a file that replaces another one at its path has another number. */
  readonly number: number;
}

export interface FilePages {
  open(path: string): Promise<PagedFile>;
  /**
   * Opens like `open`, for a file that was just written, so that the kernel has it in memory: reads a small one here.
   */
  openFresh(path: string): PagedFile;
  /** A file of these bytes that is not on the disk yet. It is read from its path once `held` returns null. */
  openHeld(path: string, bytes: Buffer, held: () => Buffer | null): PagedFile;
  /**
   * The page that the byte at `start` lies in, if it is in memory: a search looks at many without a buffer for each.
   */
  page(file: PagedFile, start: number): Buffer | null;
  /** Reads like `read`, but returns null unless all of the bytes are in memory. */
  peek(file: PagedFile, start: number, length: number): Buffer | null;
  /** Resolves with `length` bytes from `start`; fewer only where the file ends. */
  read(file: PagedFile, start: number, length: number): Promise<Buffer>;
  /** What the pages take. */
  memoryBytes(): number;
}

export function createFilePages(options: { readonly memoryBytesMax: number }): FilePages {
  const pages = createPages(options.memoryBytesMax);
  let lastNumber = 0;

  const peek = (file: PagedFile, start: number, length: number): Buffer | null => {
    const end = Math.min(start + length, file.sizeBytes);
    if (end <= start) return Buffer.alloc(0);
    const held = file.held?.() ?? null;
    if (held !== null) return held.subarray(start, end);
    const first = Math.floor(start / PAGE_BYTES);
    const last = Math.floor((end - 1) / PAGE_BYTES);
    const parts: Buffer[] = [];
    for (let page = first; page <= last; page += 1) {
      const bytes = pages.get(keyOf(file, page));
      if (bytes === undefined) return null;
      const offset = page * PAGE_BYTES;
      parts.push(bytes.subarray(Math.max(0, start - offset), end - offset));
    }
    const only = parts[0];
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
  };

  const load = async (file: PagedFile, start: number, end: number): Promise<Buffer> => {
    const from = Math.floor(start / PAGE_BYTES) * PAGE_BYTES;
    const to = Math.min(Math.ceil(end / PAGE_BYTES) * PAGE_BYTES, file.sizeBytes);
    const bytes = await readAt(file, from, to - from);
    // A long read would push out the pages that other requests need, and is seldom repeated.
    if (bytes.length <= READ_KEPT_BYTES_MAX) store(file, from, bytes);
    return bytes.subarray(start - from, end - from);
  };

  const store = (file: PagedFile, from: number, bytes: Buffer) => {
    for (let offset = 0; offset < bytes.length; offset += PAGE_BYTES) {
      // A page that is kept must not keep the buffer of the whole read in memory.
      const page = inOwnMemory(bytes.subarray(offset, offset + PAGE_BYTES));
      pages.set(keyOf(file, (from + offset) / PAGE_BYTES), page);
    }
  };
  const fileOf = (path: string, sizeBytes: number): PagedFile => {
    if (sizeBytes > PAGES_MAX * PAGE_BYTES) throw new RangeError(`${path} is too large: ${sizeBytes} bytes`);
    lastNumber += 1;
    return { path, held: null, sizeBytes, number: lastNumber };
  };

  return {
    open: async (path) => fileOf(path, (await stat(path)).size),
    openFresh: (path) => {
      const { sizeBytes, bytes } = readFresh(path);
      const file = fileOf(path, sizeBytes);
      if (bytes !== null) store(file, 0, bytes);
      return file;
    },
    openHeld: (path, bytes, held) => Object.assign(fileOf(path, bytes.length), { held }),
    page: (file, start) => {
      const page = Math.floor(start / PAGE_BYTES);
      const held = file.held?.() ?? null;
      if (held !== null) return held.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
      return pages.get(keyOf(file, page)) ?? null;
    },
    peek,
    read: async (file, start, length) => {
      const end = Math.min(start + length, file.sizeBytes);
      return peek(file, start, length) ?? load(file, start, end);
    },
    memoryBytes: () => pages.sizeTaken,
  };
}

function createPages(memoryBytesMax: number): CountedCache<number, Buffer> {
  const bounds = { maxSize: memoryBytesMax, sizeCalculation: (page: Buffer) => page.length + 128 };
  return countedCache('git_pages', 'memory', new LRUCache<number, Buffer>(bounds));
}

function keyOf({ number }: PagedFile, page: number): number {
  return number * PAGES_MAX + page;
}

/** Reads a small file on the event loop; of a larger one, or one that is cut short during it, only the size. */
function readFresh(path: string): { readonly sizeBytes: number; readonly bytes: Buffer | null } {
  const descriptor = openSync(path, 'r');
  try {
    const { size } = fstatSync(descriptor);
    const bytes = size > FRESH_BYTES_MAX ? null : Buffer.allocUnsafeSlow(size);
    const isRead = bytes !== null && readSync(descriptor, bytes, 0, size, 0) === size;
    return { sizeBytes: size, bytes: isRead ? bytes : null };
  } finally {
    closeSync(descriptor);
  }
}

/** The whole file in pieces, none of which is kept. */
export async function* fileChunks({ held, path }: PagedFile): AsyncGenerator<Buffer> {
  const bytes = held?.() ?? null;
  if (bytes !== null) yield bytes;
  else yield* createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>;
}

async function readAt(file: PagedFile, start: number, length: number): Promise<Buffer> {
  const handle = await open(file.path, 'r');
  try {
    const bytes = Buffer.allocUnsafeSlow(length);
    const { bytesRead } = await handle.read(bytes, 0, length, start);
    if (bytesRead !== length) throw new Error(`${file.path} ended at byte ${start + bytesRead}`);
    return bytes;
  } finally {
    await handle.close();
  }
}
