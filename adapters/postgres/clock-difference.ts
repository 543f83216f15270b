/**
 * How this node's clock differs from PostgreSQL's. Events carry the time of the node that appends them, so a node whose
 * clock is far off must not append: its streams would lie in the future, or in a past that others count as over.
 *
 * Invariants: the difference is read from statements that are sent anyway. The time until the answer is its
 * uncertainty, so a slow answer alone never shows a difference. What is unsure changes nothing.
 */
import type { Log } from '../../core/ports/log.ts';
import { CLOCK_DIFFERENCE_MS_MAX } from './limits.ts';

/** PostgreSQL's clock as an expression, in milliseconds since 1970. */
export const DATABASE_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::double precision';

/** By how much PostgreSQL's clock is ahead of this node's: between these two; negative if it is behind. */
export interface ClockDifference {
  readonly atLeastMs: number;
  readonly atMostMs: number;
}

export type ClockVerdict = 'agrees' | 'differs' | 'unsure';

export function judgeClock({ atLeastMs, atMostMs }: ClockDifference): ClockVerdict {
  if (atLeastMs > CLOCK_DIFFERENCE_MS_MAX || atMostMs < -CLOCK_DIFFERENCE_MS_MAX) return 'differs';
  return atLeastMs >= -CLOCK_DIFFERENCE_MS_MAX && atMostMs <= CLOCK_DIFFERENCE_MS_MAX ? 'agrees' : 'unsure';
}

/** A statement that is about to be sent. */
export interface ClockReading {
  /** This node's clock now, in milliseconds since 1970. */
  readonly sentAtMs: number;
  /** Takes PostgreSQL's clock from the answer that has just arrived. */
  answered(databaseMs: number): { readonly verdict: ClockVerdict; readonly difference: ClockDifference };
}

export interface ClockWatch {
  read(): ClockReading;
  /** Whether the last answer that told for sure showed a difference. */
  differs(): boolean;
  /**
   * By how many seconds PostgreSQL's clock is ahead of this node's for sure, as of the last answer; negative if it is
   * behind, 0 if the two may be the same, NaN before the first answer.
   */
  secondsAhead(): number;
}

export interface ClockWatchOptions {
  /** This node's clock, in milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly log: Log;
}

export function createClockWatch({ nowMs, log }: ClockWatchOptions): ClockWatch {
  let differs = false;
  let ahead = Number.NaN;
  const note = (verdict: ClockVerdict, difference: ClockDifference): void => {
    if (verdict === 'unsure' || differs === (verdict === 'differs')) return;
    differs = verdict === 'differs';
    if (differs) log.error(secondsOf(difference), 'This node refuses to append until its clock is set right');
    else log.info(secondsOf(difference), 'The clock of this node is right again: it appends');
  };
  return {
    read() {
      const sentAtMs = nowMs();
      const beganMs = performance.now();
      return {
        sentAtMs,
        answered(databaseMs) {
          const atMostMs = databaseMs - sentAtMs;
          const difference = { atLeastMs: atMostMs - (performance.now() - beganMs), atMostMs };
          const verdict = judgeClock(difference);
          ahead = leastMs(difference) / 1_000;
          note(verdict, difference);
          return { verdict, difference };
        },
      };
    },
    differs: () => differs,
    secondsAhead: () => ahead,
  };
}

function secondsOf(difference: ClockDifference): { readonly databaseAheadSeconds: number } {
  return { databaseAheadSeconds: secondsAhead(difference) };
}

/** What the clocks differ by at least: 0 if they may be the same. */
function leastMs({ atLeastMs, atMostMs }: ClockDifference): number {
  return atLeastMs > 0 ? atLeastMs : Math.min(atMostMs, 0);
}

/** Rounded: of the two bounds, the one nearer to no difference. */
export function secondsAhead({ atLeastMs, atMostMs }: ClockDifference): number {
  return Math.round((Math.abs(atLeastMs) < Math.abs(atMostMs) ? atLeastMs : atMostMs) / 1_000);
}
