/**
 * Contents of files for a commit, on this node's disk: each is deflated once, when it is whole, so that the pack of the
 * commit is only copied together, however often it is made.
 *
 * Invariants: their files have no names, so that the system frees them as soon as they are closed, or this process is
 * gone. What lies in them counts among the packs that arrive. No more of a content is in memory than a piece. Who sends
 * many large contents makes those of other accounts wait for one of them at most.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createDeflate } from 'node:zlib';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';
import { createFairSlots, type FairSlots } from '../../../core/kernel/fair-slots.ts';
import { objectId } from '../../../core/kernel/ids.ts';
import type { HeldContents, NewContents, StoredBlob } from '../../../core/ports/new-contents.ts';
import { isDiskFull } from '../cache/disk-space.ts';
import type { IncomingFolders } from '../cache/incoming-folders.ts';
import { type IncomingBytes, IncomingFullError, type IncomingPush } from './incoming-bytes.ts';
import { DISK_FULL, PackTooLargeError, tooLarge } from './pack-input.ts';

const READ_BYTES = 256 * KIB;
const WRITTEN_BYTES = 64 * KIB;
/** A smaller content takes some milliseconds to deflate, a larger one up to seconds. Internal: both wait for turns. */
const LARGE_BYTES_MIN = MIB;

/**
 * Contents that are deflated at the same time, each in some hundred kilobytes of memory: large ones and others, on a
 * node and of one account. Internal: further ones wait.
 */
const LARGE_AT_ONCE_MAX = 2;
const LARGE_PER_ACCOUNT_MAX = 1;
const SMALL_AT_ONCE_MAX = 16;
const SMALL_PER_ACCOUNT_MAX = 4;

interface NewContentsContext {
  readonly incoming: IncomingFolders;
  readonly incomingBytes: IncomingBytes;
  /** For deflating, by account. */
  readonly large: FairSlots;
  readonly small: FairSlots;
}

export function createNewContents(incoming: IncomingFolders, incomingBytes: IncomingBytes): NewContents {
  const large = createFairSlots({ slots: LARGE_AT_ONCE_MAX, slotsPerKey: LARGE_PER_ACCOUNT_MAX });
  const small = createFairSlots({ slots: SMALL_AT_ONCE_MAX, slotsPerKey: SMALL_PER_ACCOUNT_MAX });
  const context = { incoming, incomingBytes, large, small };
  return { hold: (of) => new ContentsOnDisk(context, of) };
}

interface Files {
  /** The content that arrives. */
  readonly arriving: FileHandle;
  /** Those that are whole, one after the other. */
  readonly deflated: FileHandle;
}

type Of = Parameters<NewContents['hold']>[0];

class ContentsOnDisk implements HeldContents {
  readonly #context: NewContentsContext;
  readonly #of: Of;
  /** What is deflated. */
  readonly #counted: IncomingPush;
  #files: Files | null = null;
  #storedBytes = 0;

  constructor(context: NewContentsContext, of: Of) {
    this.#context = context;
    this.#of = of;
    this.#counted = context.incomingBytes.open(of.account);
  }

  async add(bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob | PackRefusal> {
    const { account, bytesMax } = this.#of;
    const arriving = this.#context.incomingBytes.open(account);
    try {
      this.#files ??= await openFiles(this.#context.incoming);
      const sizeBytes = await this.#take(this.#files, bytes, arriving);
      return await this.#deflate(this.#files, sizeBytes);
    } catch (error) {
      if (error instanceof IncomingFullError) return error.refusal;
      if (error instanceof PackTooLargeError) return tooLarge(bytesMax);
      if (isDiskFull(error)) return DISK_FULL;
      throw error;
    } finally {
      arriving.release();
      await this.#files?.arriving.truncate();
    }
  }

  /** Returns the size of the content. */
  async #take({ arriving }: Files, bytes: AsyncIterable<Uint8Array>, counted: IncomingPush): Promise<number> {
    let sizeBytes = 0;
    for await (const chunk of bytes) {
      this.#of.signal.throwIfAborted();
      counted.add(chunk.byteLength);
      await writeAt(arriving, chunk, sizeBytes);
      sizeBytes += chunk.byteLength;
    }
    return sizeBytes;
  }

  async #deflate({ arriving, deflated }: Files, sizeBytes: number): Promise<StoredBlob> {
    const { account, bytesMax, signal } = this.#of;
    const { large, small } = this.#context;
    const release = await (sizeBytes < LARGE_BYTES_MIN ? small : large).acquire(account, signal);
    try {
      const sum = createHash('sha1').update(`blob ${sizeBytes}\0`);
      const start = this.#storedBytes;
      let end = start;
      for await (const chunk of deflatedOf(summed(readAt(arriving, 0, sizeBytes), sum))) {
        signal.throwIfAborted();
        if (end + chunk.byteLength > bytesMax) throw new PackTooLargeError('The contents are larger than a pack');
        this.#counted.add(chunk.byteLength);
        await writeAt(deflated, chunk, end);
        end += chunk.byteLength;
      }
      this.#storedBytes = end;
      const id = objectId(sum.digest('hex'));
      return { id, sizeBytes, deflated: () => readAt(deflated, start, end - start) };
    } finally {
      release();
    }
  }

  async remove(): Promise<void> {
    const files = this.#files;
    this.#files = null;
    this.#counted.release();
    if (files === null) return;
    try {
      await files.arriving.close();
    } finally {
      await files.deflated.close();
    }
  }
}

async function openFiles(incoming: IncomingFolders): Promise<Files> {
  const arriving = await openUnnamed(incoming);
  try {
    return { arriving, deflated: await openUnnamed(incoming) };
  } catch (error) {
    await arriving.close();
    throw error;
  }
}

async function openUnnamed(incoming: IncomingFolders): Promise<FileHandle> {
  const folder = await incoming.take();
  let file: FileHandle | null = null;
  try {
    const path = join(folder, 'contents');
    file = await open(path, 'wx+', 0o640);
    await unlink(path);
    await incoming.giveBack(folder);
    return file;
  } catch (error) {
    await file?.close();
    await incoming.remove(folder);
    throw error;
  }
}

/** FileHandle.write may write less than it was given. */
async function writeAt(file: FileHandle, bytes: Uint8Array, start: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    at += (await file.write(bytes, at, bytes.byteLength - at, start + at)).bytesWritten;
  }
}

async function* readAt(file: FileHandle, start: number, sizeBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < sizeBytes; ) {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, sizeBytes - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, start + at);
    if (bytesRead === 0) throw new Error('A content is shorter than what was written of it');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function* summed(bytes: AsyncIterable<Uint8Array>, sum: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    sum.update(chunk);
    yield chunk;
  }
}

async function* deflatedOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const deflater = createDeflate({ chunkSize: WRITTEN_BYTES });
  const feeding = pipeline(bytes, deflater);
  // A failure of the pipeline also makes `deflater` throw, in the loop below.
  feeding.catch(() => undefined);
  try {
    for await (const chunk of deflater) yield chunk as Uint8Array;
  } finally {
    deflater.destroy();
  }
}
