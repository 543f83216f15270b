/**
 * Long work for one page in turns of the event loop, between which others have it.
 *
 * Invariants: a turn takes a few milliseconds, if none of its steps takes longer.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long a page may have the event loop before others have it. */
const TURN_MS = 5;

/** Returns what to await after each step of the work. */
export function turnsOf(signal: AbortSignal): () => Promise<void> | undefined {
  let sinceMs = performance.now();
  const next = async (): Promise<void> => {
    await nextTurn();
    signal.throwIfAborted();
    sinceMs = performance.now();
  };
  return () => (performance.now() - sinceMs < TURN_MS ? undefined : next());
}
