/**
 * The pace of the verification in the background: how much of a core and how many bytes it takes.
 *
 * Invariants: after each piece of work it waits until both shares allow all that was done since the wait before, so
 * that over any longer time it took at most these. The process's own time of the processor counts, with all else that
 * the process did in that time: a busy node verifies more slowly. Pieces must be short, since nothing bounds the piece
 * itself.
 */
import type { Clock, Pause } from '../../ports/clock.ts';

/** The share of one core that verification takes. Internal: it is the pace of background work. */
const CORE_SHARE = 0.01;
/** What verification reads of the log and the layers. Internal: it is the pace of background work. */
const BYTES_PER_SECOND = 1_000_000;
/**
 * A piece computes for less than a hundredth of this: what is more was other work of a busy process. Internal: it is
 * the pace of background work.
 */
const CORE_REST_MS_MAX = 60_000;

export interface Pace {
  /**
   * Does a piece of work, which returns how many bytes it read, and waits. Rejects with the signal's reason when that
   * is aborted.
   */
  run<Result extends { readonly sizeBytes: number }>(work: () => Promise<Result>): Promise<Result>;
  readonly signal: AbortSignal;
}

export interface PaceParts {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly pause: Pause;
  /** Milliseconds for which the process has computed. */
  readonly computedMs: () => number;
}

export function createPace({ clock, pause, computedMs }: PaceParts, signal: AbortSignal): Pace {
  const now = () => ({ atMs: clock.monotonicMs(), computedMs: computedMs() });
  let rested = now();
  return {
    signal,
    async run(work) {
      signal.throwIfAborted();
      const result = await work();
      const done = now();
      const wantedMs = Math.max(
        Math.min((done.computedMs - rested.computedMs) / CORE_SHARE, CORE_REST_MS_MAX),
        (result.sizeBytes / BYTES_PER_SECOND) * 1_000,
      );
      const restMs = wantedMs - (done.atMs - rested.atMs);
      if (restMs > 0) await pause(Math.ceil(restMs), signal);
      signal.throwIfAborted();
      rested = now();
      return result;
    },
  };
}

/** For a round that somebody waits for. */
export function unboundedPace(signal: AbortSignal): Pace {
  return {
    signal,
    run(work) {
      signal.throwIfAborted();
      return work();
    },
  };
}
