/**
 * Holds a pack in a file while its client sends it, so that no process waits for a client. A client that proves fast is
 * waited for no longer: git then reads what is held, and the rest as it arrives.
 *
 * Invariants: what is held is what was sent, in order; memory is bounded, whatever the size of the pack.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { MIB } from '../../../core/kernel/byte-units.ts';
import type { PackInput } from './pack-input.ts';

const READ_BYTES = 256 * 1024;
/** A client may prove fast each time that it has sent this much. */
const PROOF_BYTES = MIB;
/** The rate of a fast client. Internal: the pack of a slower client is checked when it is whole. */
const FAST_BYTES_PER_SECOND_MIN = 4 * MIB;
/** How long git waits for a fast client; what the client sends at this rate earns as much time again. */
const FAST_WAIT_MS = 2_000;
/** The rate that keeps a client fast. Internal: the pack of a slower client is checked when it is whole. */
const STAYS_FAST_BYTES_PER_SECOND_MIN = MIB;

/**
 * Writes what arrives to a new file. Resolves true at the end of the pack, or false when the client has proved fast and
 * `isReady` returns true. Rejects with the error of `onBytes`, which is called before each write.
 */
export async function holdPack(
  { head, next }: PackInput,
  path: string,
  { onBytes, isReady }: { readonly onBytes: (bytes: number) => void; readonly isReady: () => boolean },
): Promise<boolean> {
  const file = await open(path, 'wx', 0o640);
  try {
    await write(file, head);
    let provenBytes = PROOF_BYTES;
    let sentBytes = 0;
    let waitedMs = 0;
    for (;;) {
      const askedAt = performance.now();
      const chunk = await next();
      waitedMs += performance.now() - askedAt;
      if (chunk === null) return true;
      onBytes(chunk.byteLength);
      await write(file, chunk);
      sentBytes += chunk.byteLength;
      if (sentBytes < provenBytes) continue;
      provenBytes += PROOF_BYTES;
      const isFast = sentBytes >= (FAST_BYTES_PER_SECOND_MIN * waitedMs) / 1_000;
      if (isFast && isReady()) return false;
    }
  } finally {
    await file.close();
  }
}

/** Writes all of these bytes to a new file. */
export async function holdBytes(bytes: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const file = await open(path, 'wx', 0o640);
  try {
    for await (const chunk of bytes) await write(file, chunk);
  } finally {
    await file.close();
  }
}

/** FileHandle.write may write less than it was given. */
async function write(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, offset, bytes.byteLength - offset);
    offset += bytesWritten;
  }
}

/** The bytes of the file, from this one on. */
export function heldBytes(path: string, start = 0): AsyncIterable<Uint8Array> {
  return createReadStream(path, { start, highWaterMark: READ_BYTES }) as AsyncIterable<Uint8Array>;
}

export interface FastPack {
  /** What is held, then the rest as it arrives. Throws SlowSenderError when the client is fast no more. */
  bytes(): AsyncGenerator<Uint8Array>;
  /** What `bytes` did not yield, however long it takes to arrive. */
  rest(): AsyncGenerator<Uint8Array>;
}

/** `onBytes` is called with the size of what arrives. */
export function createFastPack(path: string, { next }: PackInput, onBytes: (bytes: number) => void): FastPack {
  let heldSent = 0;
  const held = async function* () {
    for await (const chunk of heldBytes(path, heldSent)) {
      heldSent += chunk.byteLength;
      yield chunk;
    }
  };
  return {
    bytes: async function* () {
      yield* held();
      for (let leftMs = FAST_WAIT_MS; ; ) {
        const askedAt = performance.now();
        const chunk = await next(Math.max(0, leftMs));
        if (chunk === null) return;
        onBytes(chunk.byteLength);
        const earnedMs = (chunk.byteLength / STAYS_FAST_BYTES_PER_SECOND_MIN) * 1_000;
        leftMs = Math.min(FAST_WAIT_MS, leftMs - (performance.now() - askedAt) + earnedMs);
        yield chunk;
      }
    },
    rest: async function* () {
      yield* held();
      for (let chunk = await next(); chunk !== null; chunk = await next()) {
        onBytes(chunk.byteLength);
        yield chunk;
      }
    },
  };
}
