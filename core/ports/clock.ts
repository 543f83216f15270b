/** Time and randomness, passed in as data: core never reads the machine's clock or entropy directly. */
import type { DerivedIds, Timestamp, Uuid } from '../kernel/ids.ts';
import type { NextTurn } from '../kernel/turns.ts';

export interface Clock {
  /** The current time, UTC, to the millisecond. */
  now(): Timestamp;
  /** Milliseconds that never decrease, for measuring durations. */
  monotonicMs(): number;
  readonly nextTurn: NextTurn;
}

export interface Alarm {
  /** Resolves as soon as the clock has reached `at`, immediately if that is past, or when the signal is aborted. */
  until(at: Timestamp, signal: AbortSignal): Promise<void>;
}

/** Resolves after `ms` milliseconds, or as soon as the signal is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

/** Resolves when the work has settled, in either way, and after `ms` milliseconds at the latest. */
export type SettledWithin = (ms: number, work: Promise<unknown>) => Promise<void>;

export interface Ids extends DerivedIds {
  /** Returns a new UUID v7 (RFC 9562), sortable by time. */
  next<Id extends Uuid>(): Id;
}
