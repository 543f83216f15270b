/**
 * A pack as it arrives: its header is checked before git is started, and its size while it streams.
 *
 * Must stay true: the body of a refused push is read to its end or to the size limit, so that the client reads the
 * answer.
 */
import type { PackRefusal, ReceivePackOptions } from '../../../core/ports/object-database.ts';

const HEADER_BYTES = 12;
const MAGIC = 0x5041434b; // PACK
/** Bytes read before git is started: a small pack is whole by then, so that a slow sender keeps no process waiting. */
const READ_AHEAD_BYTES = 64 * 1024;

export interface PackInput {
  readonly objectCount: number;
  /** The whole pack, header included. Read it once, to its end. Throws PackTooLargeError at the limit. */
  bytes(): AsyncGenerator<Uint8Array>;
  /** What `bytes` did not read, if reading that ended early. Throws PackTooLargeError at the limit. */
  rest(): AsyncGenerator<Uint8Array>;
  /** Reads the rest and drops it, at most up to the limit. */
  drain(): Promise<void>;
  /** Whether the source has ended: then `bytes` has yielded the whole pack. */
  ended(): boolean;
  receivedBytes(): number;
}

export class PackTooLargeError extends Error {
  override readonly name = 'PackTooLargeError';
}

type Limits = Pick<ReceivePackOptions, 'pack' | 'packSizeBytesMax' | 'objectCountMax'>;

/** Reads the header. Rejects with the error of the pack's source when that fails. */
export async function openPackInput(limits: Limits): Promise<PackInput | PackRefusal> {
  const source = limits.pack[Symbol.asyncIterator]();
  const ahead: Uint8Array[] = [];
  let received = 0;
  let done = false;
  const next = async (): Promise<Uint8Array | null> => {
    if (done) return null;
    const result = await source.next();
    if (result.done) {
      done = true;
      return null;
    }
    received += result.value.byteLength;
    if (received <= limits.packSizeBytesMax) return result.value;
    done = true;
    await source.return?.();
    throw new PackTooLargeError(`A pack is larger than ${limits.packSizeBytesMax} bytes`);
  };
  const rest = async function* () {
    for (let chunk = await next(); chunk !== null; chunk = await next()) yield chunk;
  };
  const drain = async () => {
    try {
      while ((await next()) !== null);
    } catch (error) {
      // The push is refused for another reason already.
      if (!(error instanceof PackTooLargeError)) throw error;
    }
  };
  const refuse = async (refusal: PackRefusal): Promise<PackRefusal> => {
    await drain();
    return refusal;
  };

  try {
    while (received < READ_AHEAD_BYTES) {
      const chunk = await next();
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
    return refuse({ refused: 'pack-broken', detail: 'what was sent is not a pack of version 2 or 3' });
  }
  const objectCount = head.readUInt32BE(8);
  if (objectCount > limits.objectCountMax) {
    const detail = `the pack has ${objectCount} objects, at most ${limits.objectCountMax} are allowed`;
    return refuse({ refused: 'pack-too-many-objects', detail });
  }
  return {
    objectCount,
    bytes: async function* () {
      yield head;
      yield* rest();
    },
    rest,
    drain,
    ended: () => done,
    receivedBytes: () => received,
  };
}

export function tooLarge(packSizeBytesMax: number): PackRefusal {
  return { refused: 'pack-too-large', detail: `the pack is larger than ${packSizeBytesMax} bytes` };
}
