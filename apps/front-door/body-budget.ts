/**
 * The memory of this process for bodies of requests that are read whole: JSON, forms, and what fetches ask for.
 *
 * Must stay true: what is held never exceeds `BODIES_HELD_BYTES_MAX`, after inflation. No caller has all of it: while much
 * of it is taken, each has little. What is held is released exactly once, when its request is over.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AccountId } from '../../core/kernel/ids.ts';
import {
  BODIES_HELD_BYTES_MAX,
  BODIES_HELD_OF_CALLER_BYTES_MAX,
  BODIES_HELD_OF_CALLER_TIGHT_BYTES_MAX,
  BODIES_HELD_ROOMY_BYTES_MAX,
} from '../../core/kernel/limits.ts';
import { networkOf } from '../../core/kernel/network.ts';

/** What one request holds. */
export interface HeldBody {
  /** Holds more bytes; holds nothing more and returns why if there is no room. */
  grow(bytes: number): BodyRefusal | null;
  /** Later calls do nothing. */
  release(): void;
}

/** Whose room is full: that of the caller, or of all. */
export interface BodyRefusal {
  readonly status: 429 | 503;
  /** Without a full stop. */
  readonly text: string;
  readonly waitSeconds: number;
}

export interface BodyBudget {
  /** `caller` is an account, or the network of somebody without one. */
  open(caller: string): HeldBody;
  /** Of all requests. */
  heldBytes(): number;
}

/**
 * Holds the memory for a body that is read whole until its response is closed: as many bytes as it announces, but no more
 * than are read of it.
 */
export function holdBody(
  door: { readonly bodyBudget: BodyBudget; readonly clientAddress: (request: IncomingMessage) => string },
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  { account, bytesMax }: { readonly account: AccountId | null; readonly bytesMax: number },
): BodyRefusal | null {
  const bytes = announcedBytes(request.headers, bytesMax);
  if (bytes === 0) return null;
  const held = door.bodyBudget.open(account ?? networkOf(door.clientAddress(request)));
  const refusal = held.grow(bytes);
  if (refusal === null) response.once('close', held.release);
  return refusal;
}

function announcedBytes(headers: IncomingHttpHeaders, bytesMax: number): number {
  // Of a body in chunks nothing is known.
  if (headers['transfer-encoding'] !== undefined) return bytesMax;
  const announced = Number(headers['content-length'] ?? 0);
  return announced >= 0 && announced <= bytesMax ? announced : bytesMax;
}

const CALLER_FULL: BodyRefusal = {
  status: 429,
  text: 'Too many bytes of your requests are under way: wait until some are answered, then try again',
  waitSeconds: 5,
};
const ALL_FULL: BodyRefusal = {
  status: 503,
  text: 'The service holds as many bytes of requests as it can: try again',
  waitSeconds: 5,
};

export function createBodyBudget(): BodyBudget {
  const ofCallers = new Map<string, number>();
  let total = 0;
  const add = (caller: string, bytes: number): void => {
    total += bytes;
    const held = (ofCallers.get(caller) ?? 0) + bytes;
    if (held > 0) ofCallers.set(caller, held);
    else ofCallers.delete(caller);
  };
  const roomOf = (): number =>
    total < BODIES_HELD_ROOMY_BYTES_MAX ? BODIES_HELD_OF_CALLER_BYTES_MAX : BODIES_HELD_OF_CALLER_TIGHT_BYTES_MAX;
  return {
    heldBytes: () => total,
    open(caller) {
      let held = 0;
      let released = false;
      return {
        grow(bytes) {
          if (released) return null;
          if ((ofCallers.get(caller) ?? 0) + bytes > roomOf()) return CALLER_FULL;
          if (total + bytes > BODIES_HELD_BYTES_MAX) return ALL_FULL;
          held += bytes;
          add(caller, bytes);
          return null;
        },
        release() {
          if (released) return;
          released = true;
          if (held > 0) add(caller, -held);
        },
      };
    },
  };
}
