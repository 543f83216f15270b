/**
 * A pack as it arrives: its header is checked before git is started, and its size while it streams.
 *
 * Invariants: the body of a refused push is read to its end or to the size limit, so that the client reads the
 * answer. A wait for the client that was given up loses nothing: what arrives later is read next.
 */
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import type { ReceivePackOptions } from '../../../core/ports/object-database.ts';

const HEADER_BYTES = 12;
/**
 * An object takes a byte of type and size, and the shortest zlib stream has eight. Internal: it is the form of a pack.
 */
const OBJECT_BYTES_MIN = 9;

const MAGIC = 0x5041434b; // PACK
/** Bytes read before git is started, and kept in memory: a small pack is whole by then. */
const READ_AHEAD_BYTES = 64 * 1024;

export interface PackInput {
  readonly objectCount: number;
  /** What was read ahead, header included. */
  readonly head: Buffer;
  /** The whole pack. Read it once, to its end. Throws PackTooLargeError at the limit. */
  bytes(): AsyncGenerator<Uint8Array>;
  /** What was not read yet. Throws PackTooLargeError at the limit. */
  rest(): AsyncGenerator<Uint8Array>;
  /**
   * Resolves with the next bytes, or null at the end. Throws SlowSenderError when the client sends nothing for so long,
   * and PackTooLargeError at the limit.
   */
  next(waitMs?: number): Promise<Uint8Array | null>;
  /** Reads the rest and drops it, at most up to the limit. */
  drain(): Promise<void>;
  /** Whether the source has ended: then everything was read. */
  ended(): boolean;
  /** Whether what was received is too short to hold the objects that the header claims. */
  isTooShort(): boolean;
  receivedBytes(): number;
}

export class PackTooLargeError extends Error {
  override readonly name = 'PackTooLargeError';
}

/** The client sent nothing for longer than it was waited for. The wait may be taken up again. */
export class SlowSenderError extends Error {
  override readonly name = 'SlowSenderError';
}

type Limits = Pick<ReceivePackOptions, 'pack' | 'packSizeBytesMax' | 'objectCountMax'>;

/** Reads the header. Rejects with the error of the pack's source when that fails. */
export async function openPackInput(limits: Limits): Promise<PackInput | PackRefusal> {
  const source = createPackSource(limits);
  const ahead: Uint8Array[] = [];
  try {
    while (source.receivedBytes() < READ_AHEAD_BYTES) {
      const chunk = await source.next();
      if (chunk === null) break;
      ahead.push(chunk);
    }
  } catch (error) {
    if (error instanceof PackTooLargeError) return tooLarge(limits.packSizeBytesMax);
    throw error;
  }
  const head = Buffer.concat(ahead);
  if (head.length < HEADER_BYTES) return { refused: 'pack-broken', detail: 'the pack ends too early' };
  const version = head.readUInt32BE(4);
  if (head.readUInt32BE(0) !== MAGIC || (version !== 2 && version !== 3)) {
    await source.drain();
    return { refused: 'pack-broken', detail: 'what was sent is not a pack of version 2 or 3' };
  }
  const objectCount = head.readUInt32BE(8);
  if (objectCount > limits.objectCountMax) {
    await source.drain();
    const detail = `the pack has ${objectCount} objects, at most ${limits.objectCountMax} are allowed`;
    return { refused: 'pack-too-many-objects', detail };
  }
  const bytesMin = HEADER_BYTES + objectCount * OBJECT_BYTES_MIN + PACK_CHECKSUM_BYTES;
  return {
    ...source,
    objectCount,
    head,
    bytes: async function* () {
      yield head;
      yield* source.rest();
    },
    isTooShort: () => source.ended() && source.receivedBytes() < bytesMin,
  };
}

type PackSource = Omit<PackInput, 'objectCount' | 'head' | 'bytes' | 'isTooShort'>;

function createPackSource({ pack, packSizeBytesMax }: Limits): PackSource {
  const source = pack[Symbol.asyncIterator]();
  let received = 0;
  let done = false;
  /** What was asked for, and has not arrived. */
  let asked: Promise<IteratorResult<Uint8Array>> | null = null;
  const next = async (waitMs?: number): Promise<Uint8Array | null> => {
    if (done) return null;
    asked ??= source.next();
    const result = await (waitMs === undefined ? asked : within(asked, waitMs));
    asked = null;
    if (result.done) {
      done = true;
      return null;
    }
    received += result.value.byteLength;
    if (received <= packSizeBytesMax) return result.value;
    done = true;
    await source.return?.();
    throw new PackTooLargeError(`A pack is larger than ${packSizeBytesMax} bytes`);
  };
  return {
    next,
    rest: async function* () {
      for (let chunk = await next(); chunk !== null; chunk = await next()) yield chunk;
    },
    drain: async () => {
      try {
        while ((await next()) !== null);
      } catch (error) {
        // The push is refused for another reason already.
        if (!(error instanceof PackTooLargeError)) throw error;
      }
    },
    ended: () => done,
    receivedBytes: () => received,
  };
}

async function within<Result>(work: Promise<Result>, waitMs: number): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new SlowSenderError('A client sent nothing for too long')), waitMs);
  try {
    // race() handles a rejection that comes after the wait.
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export const DISK_FULL: PackRefusal = { refused: 'disk-full', detail: 'the server has no room left' };

export function tooLarge(packSizeBytesMax: number): PackRefusal {
  return { refused: 'pack-too-large', detail: `the pack is larger than ${packSizeBytesMax} bytes` };
}
