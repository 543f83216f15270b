/**
 * Pages of files that never change, kept in bounded memory: packs and large indexes are read through it.
 *
 * Must stay true: a page holds the file's bytes at its place; nothing that was read is ever written to.
 */
import { open, stat } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';

const PAGE_BYTES = 16 * 1024;
/** Pages of one file, at most: with the number of the file they make one safe integer. */
const PAGES_MAX = 2 ** 26;

export interface PagedFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Unique in this process: a file that takes another's name is another file. */
  readonly number: number;
}

export interface FilePages {
  open(path: string): Promise<PagedFile>;
  /** The bytes, or null unless all of them are in memory. */
  peek(file: PagedFile, start: number, length: number): Buffer | null;
  /** The bytes; fewer only where the file ends. */
  read(file: PagedFile, start: number, length: number): Promise<Buffer>;
}

export function createFilePages(options: { readonly memoryBytesMax: number }): FilePages {
  const pages = new LRUCache<number, Buffer>({
    maxSize: options.memoryBytesMax,
    sizeCalculation: (page) => page.length + 128,
  });
  let lastNumber = 0;

  const peek = (file: PagedFile, start: number, length: number): Buffer | null => {
    const end = Math.min(start + length, file.sizeBytes);
    if (end <= start) return Buffer.alloc(0);
    const first = Math.floor(start / PAGE_BYTES);
    const last = Math.floor((end - 1) / PAGE_BYTES);
    const parts: Buffer[] = [];
    for (let page = first; page <= last; page += 1) {
      const bytes = pages.get(file.number * PAGES_MAX + page);
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
    for (let offset = 0; offset < bytes.length; offset += PAGE_BYTES) {
      // A copy each: a page that stays must not keep the whole read in memory.
      const page = Buffer.from(bytes.subarray(offset, offset + PAGE_BYTES));
      pages.set(file.number * PAGES_MAX + (from + offset) / PAGE_BYTES, page);
    }
    return bytes.subarray(start - from, end - from);
  };

  return {
    open: async (path) => {
      const { size } = await stat(path);
      if (size > PAGES_MAX * PAGE_BYTES) throw new RangeError(`${path} is too large: ${size} bytes`);
      lastNumber += 1;
      return { path, sizeBytes: size, number: lastNumber };
    },
    peek,
    read: async (file, start, length) => {
      const end = Math.min(start + length, file.sizeBytes);
      return peek(file, start, length) ?? load(file, start, end);
    },
  };
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
