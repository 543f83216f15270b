/**
 * How far each read model is behind the log, in events and in seconds.
 *
 * Invariants: nothing is read and no timer runs for it: it compares what the operator's own looks show. So the seconds
 * begin at the first look that saw an event which the model still lacks.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';

export interface ModelLag {
  /** Positions of the log: those are events if the log has no gaps. */
  readonly positions: number;
  readonly seconds: number;
}

export interface ModelLags {
  /** Takes how far the log and a model are now, and returns how far the model is behind. */
  see(model: string, position: LogPosition, head: LogPosition): ModelLag;
}

/** What a model has to reach to be no longer as late as it is. */
interface Behind {
  readonly head: LogPosition;
  readonly sinceMs: number;
}

/** `monotonicMs` is a clock that only goes forward. */
export function createModelLags(monotonicMs: () => number): ModelLags {
  const behind = new Map<string, Behind>();
  return {
    see(model, position, head) {
      if (position >= head) {
        behind.delete(model);
        return { positions: 0, seconds: 0 };
      }
      let since = behind.get(model);
      if (since === undefined || position >= since.head) {
        since = { head, sinceMs: monotonicMs() };
        behind.set(model, since);
      }
      return { positions: Number(head - position), seconds: (monotonicMs() - since.sinceMs) / 1_000 };
    },
  };
}
