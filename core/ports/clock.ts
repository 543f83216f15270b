/** Time and randomness as data from outside: core never reads the machine's clock or entropy by itself. */
import type { Timestamp, Uuid } from '../kernel/ids.ts';

export interface Clock {
  /** Now, UTC, to the millisecond. */
  now(): Timestamp;
  /** Milliseconds that only grow, for measuring spans. */
  monotonicMs(): number;
}

export interface Alarm {
  /** Resolves once the clock shows the time, at once if it does already, or when the signal is aborted. */
  until(at: Timestamp, signal: AbortSignal): Promise<void>;
}

export interface Ids {
  /** A new UUID v7 (RFC 9562): sortable by time. */
  next<Id extends Uuid>(): Id;
  /** The UUID v5 of a name in a namespace: the same input gives the same id for ever. */
  derive<Id extends Uuid>(namespace: Uuid, name: string): Id;
}
