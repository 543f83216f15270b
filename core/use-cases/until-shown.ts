/**
 * Waits for a read model as long as it takes: one that is built anew from a long log does not answer for minutes, and
 * whoever works by it has nothing better to do meanwhile.
 *
 * Must stay true: it answers true only once the position is shown; each wait for the model is bounded by the model.
 */
import type { LogPosition } from '../kernel/envelope.ts';

export interface ShownOptions {
  /** Resolves when the model shows the position; rejects with `ReadModelError` in time. */
  readonly caughtUp: (position: LogPosition) => Promise<void>;
  /** Told once, however long it takes. */
  readonly onBehind: (cause: unknown) => void;
}

/** False when the signal was aborted before. */
export async function untilShown(
  { caughtUp, onBehind }: ShownOptions,
  position: LogPosition,
  signal: AbortSignal,
): Promise<boolean> {
  let told = false;
  while (!signal.aborted) {
    try {
      await caughtUp(position);
      return true;
    } catch (error) {
      if (!told) onBehind(error);
      told = true;
    }
  }
  return false;
}
