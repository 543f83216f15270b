/**
 * Long work of one request in turns of the event loop, between which other requests have it.
 *
 * Invariants: after `next` everything that waited for the event loop has had its turn.
 */
import { setImmediate } from 'node:timers/promises';

export interface Turns {
  /** Whether the work has had the event loop for as long as one turn may take. */
  isOver(): boolean;
  /** Begins the next turn. Rejects with the signal's reason when it is aborted. */
  next(): Promise<void>;
}

/** The first turn begins now. */
export function createTurns(turnMs: number, signal?: AbortSignal): Turns {
  let sinceMs = performance.now();
  return {
    isOver: () => performance.now() - sinceMs >= turnMs,
    next: async () => {
      await setImmediate();
      signal?.throwIfAborted();
      sinceMs = performance.now();
    },
  };
}
