/**
 * Waits for a read model without a time limit: a rebuild from a long log takes minutes, and the policies that depend on
 * the model can do nothing until it is done.
 *
 * Invariants: it returns true only after the model has applied the position. Each single wait ends by the timeout
 * of `caughtUp`.
 */
import type { LogPosition } from '../kernel/envelope.ts';

export interface ProjectionWait {
  /** Resolves when the model has applied the position; rejects with `ReadModelError` at its timeout. */
  readonly caughtUp: (position: LogPosition) => Promise<void>;
  /** Called with the first error only, however long the wait takes. */
  readonly onBehind: (cause: unknown) => void;
}

/** Returns true when the model has applied the position, false if the signal was aborted first. */
export async function waitUntilProjected(
  { caughtUp, onBehind }: ProjectionWait,
  position: LogPosition,
  signal: AbortSignal,
): Promise<boolean> {
  let reported = false;
  while (!signal.aborted) {
    try {
      await caughtUp(position);
      return true;
    } catch (error) {
      if (!reported) onBehind(error);
      reported = true;
    }
  }
  return false;
}
