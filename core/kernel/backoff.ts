/**
 * Exponential backoff: the pauses between retries. A short fault costs little time, and a long one causes few retries.
 *
 * Invariants: each pause is twice the one before, up to `lastMs`; after a success the first pause is used again.
 */

export interface Backoff {
  /** Returns the pause before the next try, in milliseconds. */
  next(): number;
  /** Call it after a success: the next pause is the first again. */
  reset(): void;
}

export function backoff(firstMs: number, lastMs: number): Backoff {
  let pauseMs = firstMs;
  return {
    next() {
      const nextMs = pauseMs;
      pauseMs = Math.min(pauseMs * 2, lastMs);
      return nextMs;
    },
    reset() {
      pauseMs = firstMs;
    },
  };
}
