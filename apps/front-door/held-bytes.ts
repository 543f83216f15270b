/**
 * A bounded number of bytes that requests share, with a part for each caller: an account, or who has none by the
 * networks of its address.
 *
 * Invariants: no caller has all of it, and strangers take nothing from accounts. While much is taken, each has little.
 * One /48 of IPv6 has no more than a few of its networks could have. What is held is released exactly once.
 */
import type { ServerResponse } from 'node:http';
import { networkOf, wideNetworkOf } from '../../core/kernel/network.ts';

/** An account, or the address of somebody without one. */
export type Caller = { readonly account: string } | { readonly address: string };

/** What one request holds. */
export interface Held {
  /** Holds more bytes; holds nothing more and returns why if there is no room. */
  grow(bytes: number): HeldRefusal | null;
  /** Holds no more than these bytes from now on. */
  keep(bytes: number): void;
  /** Later calls do nothing. */
  release(): void;
}

/** Whose room is full: that of the caller, or of all. */
export interface HeldRefusal {
  readonly status: 429 | 503;
  /** Without a full stop. */
  readonly text: string;
  readonly waitSeconds: number;
}

export interface HeldBytes {
  open(caller: Caller): Held;
  /** The bytes of all requests. */
  heldBytes(): number;
}

/** Bytes that one may hold, and how many while the pool is not roomy any more. */
export interface Part {
  readonly bytesMax: number;
  readonly tightBytesMax: number;
}

/** Bytes that all may hold, and from how many on each has its tight part. */
export interface PoolBounds {
  readonly bytesMax: number;
  readonly roomyBytesMax: number;
}

export interface HeldBounds {
  readonly accounts: PoolBounds & { readonly account: Part };
  readonly strangers: PoolBounds & { readonly network: Part; readonly wideNetwork: Part };
}

export interface HeldTexts {
  readonly callerFull: string;
  readonly allFull: string;
}

const WAIT_SECONDS = 5;

export function createHeldBytes({ accounts, strangers }: HeldBounds, texts: HeldTexts): HeldBytes {
  const ofAccounts = createPool(accounts);
  const ofStrangers = createPool(strangers);
  const shareOf = (caller: Caller): Share => {
    if ('account' in caller) return ofAccounts.share([[caller.account, accounts.account]]);
    return ofStrangers.share([
      [networkOf(caller.address), strangers.network],
      [`wide ${wideNetworkOf(caller.address)}`, strangers.wideNetwork],
    ]);
  };
  const refusals = {
    caller: { status: 429, text: texts.callerFull, waitSeconds: WAIT_SECONDS },
    all: { status: 503, text: texts.allFull, waitSeconds: WAIT_SECONDS },
  } as const;
  return {
    heldBytes: () => ofAccounts.heldBytes() + ofStrangers.heldBytes(),
    open(caller) {
      const share = shareOf(caller);
      let held = 0;
      let released = false;
      return {
        grow(bytes) {
          if (released) return null;
          const full = share.fullFor(bytes);
          if (full !== null) return refusals[full];
          held += bytes;
          share.add(bytes);
          return null;
        },
        keep(bytes) {
          if (released || bytes >= held) return;
          share.add(bytes - held);
          held = bytes;
        },
        release() {
          if (released) return;
          released = true;
          if (held > 0) share.add(-held);
        },
      };
    },
  };
}

/** Releases what is held when the response is closed; immediately if the client has left already. */
export function releaseWith(response: ServerResponse, { release }: Pick<Held, 'release'>): void {
  if (response.closed) release();
  else response.once('close', release);
}

interface Share {
  /** Returns what has no room for this many bytes more. */
  fullFor(bytes: number): 'caller' | 'all' | null;
  add(bytes: number): void;
}

/** Each of the names counts all bytes of a share. */
function createPool({ bytesMax, roomyBytesMax }: PoolBounds) {
  const byName = new Map<string, number>();
  let total = 0;
  return {
    heldBytes: () => total,
    share: (parts: readonly (readonly [name: string, part: Part])[]): Share => ({
      fullFor(bytes) {
        const isRoomy = total < roomyBytesMax;
        for (const [name, part] of parts) {
          const most = isRoomy ? part.bytesMax : part.tightBytesMax;
          if ((byName.get(name) ?? 0) + bytes > most) return 'caller';
        }
        return total + bytes > bytesMax ? 'all' : null;
      },
      add(bytes) {
        total += bytes;
        for (const [name] of parts) {
          const held = (byName.get(name) ?? 0) + bytes;
          if (held > 0) byName.set(name, held);
          else byName.delete(name);
        }
      },
    }),
  };
}
