/**
 * The memory of this process for bodies of requests that are held whole: JSON, forms, what fetches ask for, and the
 * commands of pushes.
 *
 * Invariants: what is held never exceeds `BODY_BOUNDS`, after inflation. A body counts as it arrives, with what its
 * pieces take of memory: what a client announces and does not send costs nobody anything. What is held is released
 * exactly once, when its request is over.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { KIB, MIB } from '../../core/kernel/byte-units.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { BODY_CHUNK_HELD_BYTES } from '../../core/kernel/limits.ts';
import {
  createHeldBytes,
  type Held,
  type HeldBounds,
  type HeldBytes,
  type HeldRefusal,
  releaseWith,
} from './held-bytes.ts';

/** Bytes of bodies, after inflation. Packs are not among them, which go to the disk as they arrive. */
export const BODY_BOUNDS: HeldBounds = {
  accounts: {
    bytesMax: 224 * MIB,
    roomyBytesMax: 160 * MIB,
    account: { bytesMax: 64 * MIB, tightBytesMax: 4 * MIB },
  },
  strangers: {
    bytesMax: 32 * MIB,
    roomyBytesMax: 16 * MIB,
    network: { bytesMax: 4 * MIB, tightBytesMax: 256 * KIB },
    wideNetwork: { bytesMax: 8 * MIB, tightBytesMax: 512 * KIB },
  },
};

const TEXTS = {
  callerFull: 'Too many bytes of your requests are under way: wait until some are answered, then try again',
  allFull: 'The service holds as many bytes of requests as it can: try again',
};

export function createBodyBudget(): HeldBytes {
  return createHeldBytes(BODY_BOUNDS, TEXTS);
}

/** There is no memory for the rest of a body. */
export class BodyNotHeld extends Error {
  override readonly name = 'BodyNotHeld';
  readonly refusal: HeldRefusal;
  constructor(refusal: HeldRefusal) {
    super('There is no room for the body');
    this.refusal = refusal;
  }
}

/**
 * Returns the body of a request, whose bytes are held as they are read until its response is closed, each as `factor`
 * of them. Its reader gets `BodyNotHeld` as soon as there is no room for more; the connection can still be answered
 * then.
 */
export function heldBody(
  door: { readonly bodyBudget: HeldBytes; readonly clientAddress: (request: IncomingMessage) => string },
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  account: AccountId | null,
  factor = 1,
): Readable {
  const { 'transfer-encoding': coding, 'content-length': length } = request.headers;
  if (coding === undefined && Number(length ?? 0) === 0) return request;
  const held = door.bodyBudget.open(account === null ? { address: door.clientAddress(request) } : { account });
  releaseWith(response, held);
  const body = Readable.from(counted(request, held, factor), { objectMode: false });
  // Its reader listens only while it reads, and after a refusal the body may still fail: that is nobody's failure then.
  body.on('error', () => undefined);
  return body;
}

async function* counted(request: IncomingMessage, held: Held, factor: number): AsyncGenerator<Buffer, void, undefined> {
  // The answer uses the same socket, so it outlives the reading.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!(chunk instanceof Buffer)) throw new TypeError('A body is read as bytes');
    const refusal = held.grow(factor * chunk.length + BODY_CHUNK_HELD_BYTES);
    if (refusal !== null) throw new BodyNotHeld(refusal);
    yield chunk;
  }
}
