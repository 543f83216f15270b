/**
 * Work behind answers (core/ports/background.ts), in this process.
 *
 * Invariants: `settled` resolves only when all work that was begun has ended, so a stop loses none of it.
 */
import type { Background } from '../../core/ports/background.ts';

export interface DrainedBackground extends Background {
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

export function createBackground(onFault: (what: string, cause: unknown) => void): DrainedBackground {
  const running = new Set<Promise<void>>();
  return {
    run(what, work) {
      const ended = work()
        .catch((cause: unknown) => onFault(what, cause))
        .finally(() => running.delete(ended));
      running.add(ended);
    },
    settled: async () => {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
