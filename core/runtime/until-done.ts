/** Repeats work that may fail for a while, such as during an outage, with growing pauses. */
import { backoff } from '../kernel/backoff.ts';
import type { Pause } from '../ports/clock.ts';

const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 5_000;

export interface Repeating {
  readonly pause: Pause;
  readonly onFault: (error: unknown) => void;
}

/** Resolves with the value of the first try that succeeds; null if the signal is aborted before that. */
export async function untilDone<Value>(
  { pause, onFault }: Repeating,
  signal: AbortSignal,
  work: () => Promise<Value>,
): Promise<Value | null> {
  const pauses = backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
  while (!signal.aborted) {
    try {
      return await work();
    } catch (error) {
      onFault(error);
    }
    await pause(pauses.next(), signal);
  }
  return null;
}
