/**
 * The files of answers on this node's disk.
 *
 * Invariants: a full disk is no failure; kept answers are removed first, and then the caller learns that the disk is
 * full.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { isDiskFull } from '../cache/disk-space.ts';

/** What a reader has of a file in memory: there may be a thousand who read slowly. */
const READ_CHUNK_BYTES = 256 * 1024;
const SHORT = 'The file of an answer is shorter than what was written';

export interface AnswerFiles {
  newPath(): string;
  /** Creates a file to write and read, and its folder, which anybody may delete; null if the disk is full. */
  create(path: string): Promise<FileHandle | null>;
  /** Writes all bytes; resolves false if the disk is full. */
  write(file: FileHandle, bytes: Uint8Array, position: number): Promise<boolean>;
}

export interface AnswerFilesOptions {
  readonly directory: string;
  /** Removes what can be made again. */
  readonly freeDisk: () => Promise<void>;
}

export function createAnswerFiles({ directory, freeDisk }: AnswerFilesOptions): AnswerFiles {
  const withDiskSpace = async <Result>(attempt: () => Promise<Result>): Promise<Result | null> => {
    for (const next of [freeDisk, null]) {
      try {
        return await attempt();
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        await next?.();
      }
    }
    return null;
  };
  return {
    newPath: () => join(directory, randomUUID()),
    create: (path) =>
      withDiskSpace(async () => {
        await mkdir(directory, { recursive: true });
        return open(path, 'wx+');
      }),
    write: async (file, bytes, position) => (await withDiskSpace(() => writeAt(file, bytes, position))) !== null,
  };
}

async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}

/** Reads some of the bytes from `position` to `end`, which are in the file. */
export async function readSome(file: FileHandle, position: number, end: number): Promise<Buffer> {
  const chunk = Buffer.allocUnsafe(Math.min(READ_CHUNK_BYTES, end - position));
  const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
  if (bytesRead === 0) throw new Error(SHORT);
  return chunk.subarray(0, bytesRead);
}

/** Fills the buffer with the first bytes of the file. */
export async function readAll(file: FileHandle, into: Buffer): Promise<void> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await file.read(into, at, into.length - at, at);
    if (bytesRead === 0) throw new Error(SHORT);
    at += bytesRead;
  }
}

/** What is in memory, in the parts in which files are read. */
export function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += READ_CHUNK_BYTES) yield bytes.subarray(at, at + READ_CHUNK_BYTES);
}
