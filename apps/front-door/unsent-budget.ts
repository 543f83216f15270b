/**
 * The memory of this process for answers that were made whole and that their clients have not read yet.
 *
 * Invariants: an answer counts from the moment it is sent until its response is closed, by who asked for it, so that no
 * caller fills the memory by not reading. The same bytes, sent to a caller again and again, are there once, and count
 * once. Short answers do not count: the number of requests bounds them.
 */
import type { ServerResponse } from 'node:http';
import { KIB, MIB } from '../../core/kernel/byte-units.ts';
import {
  type Caller,
  createHeldBytes,
  type Held,
  type HeldBounds,
  type HeldRefusal,
  releaseWith,
} from './held-bytes.ts';

/** Bytes of answers that are not read yet. */
export const UNSENT_BOUNDS: HeldBounds = {
  accounts: {
    bytesMax: 192 * MIB,
    roomyBytesMax: 96 * MIB,
    account: { bytesMax: 48 * MIB, tightBytesMax: 8 * MIB },
  },
  strangers: {
    bytesMax: 32 * MIB,
    roomyBytesMax: 16 * MIB,
    network: { bytesMax: 4 * MIB, tightBytesMax: 256 * KIB },
    wideNetwork: { bytesMax: 8 * MIB, tightBytesMax: 512 * KIB },
  },
};

/** Shorter answers do not count. */
export const COUNTED_BYTES_MIN = 16 * KIB;

const TEXTS = {
  callerFull: 'Too many bytes of answers wait for you to read them: read some, then try again',
  allFull: 'The service holds as many bytes of answers as it can: try again',
};

export interface UnsentBudget {
  /**
   * Bytes that are held for the caller already take no more. A number is of what an answer is made from while it is
   * read.
   */
  hold(caller: Caller, bytes: Uint8Array | string | number): Pick<Held, 'release'> | HeldRefusal;
  /** The bytes of all answers. */
  heldBytes(): number;
}

/** What one caller holds of the same bytes. */
interface Shared {
  readonly held: Held;
  answers: number;
}

export function createUnsentBudget(): UnsentBudget {
  const budget = createHeldBytes(UNSENT_BOUNDS, TEXTS);
  const byBytes = new WeakMap<Uint8Array, Map<string, Shared>>();
  const sharedOf = (bytes: Uint8Array): Map<string, Shared> => {
    const callers = byBytes.get(bytes) ?? new Map<string, Shared>();
    byBytes.set(bytes, callers);
    return callers;
  };
  return {
    heldBytes: budget.heldBytes,
    hold(caller, bytes) {
      const callers = typeof bytes === 'object' ? sharedOf(bytes) : new Map<string, Shared>();
      const name = 'account' in caller ? caller.account : caller.address;
      const shared = callers.get(name) ?? { held: budget.open(caller), answers: 0 };
      if (shared.answers === 0) {
        const refusal = shared.held.grow(typeof bytes === 'number' ? bytes : Buffer.byteLength(bytes));
        if (refusal !== null) return refusal;
        callers.set(name, shared);
      }
      shared.answers += 1;
      let released = false;
      return {
        release() {
          if (released) return;
          released = true;
          shared.answers -= 1;
          if (shared.answers > 0) return;
          callers.delete(name);
          shared.held.release();
        },
      };
    },
  };
}

/**
 * Holds the memory for an answer until its response is closed. Returns why not if there is no room: then it must not be
 * sent whole.
 */
export function holdUnsent(
  budget: UnsentBudget,
  response: ServerResponse,
  caller: Caller,
  bytes: Uint8Array | string | number,
): HeldRefusal | null {
  if ((typeof bytes === 'number' ? bytes : bytes.length) < COUNTED_BYTES_MIN) return null;
  const held = budget.hold(caller, bytes);
  if ('status' in held) return held;
  releaseWith(response, held);
  return null;
}
