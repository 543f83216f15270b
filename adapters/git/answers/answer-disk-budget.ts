/**
 * The disk budget of git's answers on this node: whoever writes an answer reserves its bytes first.
 *
 * Invariants: what is reserved is never more than the bound, and is given back only when the bytes are off the disk;
 * an account reserves at most half of it for answers that are being made. When the budget is full, kept answers are
 * removed, the least recently used first.
 */
import { MIB } from '../../../core/kernel/byte-units.ts';

/** A growing answer reserves this much each time, so that it rarely waits. Internal: it is the size of a step. */
const STEP_BYTES_MAX = MIB;

const STEPS = 64;
const ACCOUNT_SHARE = 0.5;

export interface AnswerDiskBudgetOptions {
  readonly bytesMax: number;
  /** Removes a kept answer that nobody reads; resolves false if there is none. */
  readonly removeOne: () => Promise<boolean>;
}

export interface AnswerDiskBudget {
  /** A reservation of nothing, for an answer that is made for this account. */
  open(account: string): Reservation;
  /** Bytes reserved for kept answers and for all others. */
  reserved(): { readonly keptBytes: number; readonly growingBytes: number };
}

export interface Reservation {
  /** Makes it hold at least `bytes`. Resolves false, and changes nothing, if they do not fit. One call at a time. */
  holds(bytes: number): Promise<boolean>;
  /** Gives back what is beyond `bytes`: the answer is whole and kept, and counts no more as its account's. */
  keep(bytes: number): void;
  /** Gives everything back. Idempotent. */
  release(): void;
}

export function createAnswerDiskBudget({ bytesMax, removeOne }: AnswerDiskBudgetOptions): AnswerDiskBudget {
  const stepBytes = Math.min(STEP_BYTES_MAX, Math.ceil(bytesMax / STEPS));
  const accountBytesMax = Math.floor(bytesMax * ACCOUNT_SHARE);
  const ofAccount = new Map<string, number>();
  let keptBytes = 0;
  let growingBytes = 0;

  const fits = (bytes: number) => keptBytes + growingBytes + bytes <= bytesMax;
  const share = (account: string) => ofAccount.get(account) ?? 0;
  const addTo = (account: string, bytes: number) => {
    growingBytes += bytes;
    const sum = share(account) + bytes;
    if (sum === 0) ofAccount.delete(account);
    else ofAccount.set(account, sum);
  };

  const open = (account: string): Reservation => {
    let held = 0;
    let state: 'growing' | 'kept' | 'released' = 'growing';
    const mayTake = (bytes: number) => share(account) + bytes <= accountBytesMax;
    const take = (bytes: number) => {
      held += bytes;
      addTo(account, bytes);
    };
    return {
      async holds(bytes) {
        if (bytes <= held) return true;
        const step = Math.ceil(bytes / stepBytes) * stepBytes - held;
        if (fits(step) && mayTake(step)) {
          take(step);
          return true;
        }
        const needed = bytes - held;
        if (!mayTake(needed)) return false;
        while (!fits(needed)) if (!(await removeOne())) return false;
        // The account may have taken its share since, or this answer may have ended.
        if (state !== 'growing' || !mayTake(needed)) return false;
        take(needed);
        return true;
      },
      keep(bytes) {
        addTo(account, -held);
        held = bytes;
        keptBytes += bytes;
        state = 'kept';
      },
      release() {
        if (state === 'kept') keptBytes -= held;
        else if (state === 'growing') addTo(account, -held);
        held = 0;
        state = 'released';
      },
    };
  };
  return { open, reserved: () => ({ keptBytes, growingBytes }) };
}
