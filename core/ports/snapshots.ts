/**
 * Snapshots of long streams: a state to fold from, later than the first event.
 *
 * Invariants: snapshots are disposable. Losing one, or all, costs time and changes no answer. A snapshot of another
 * code version is ignored.
 */
import type { Parts } from '../kernel/decider.ts';
import type { StreamName } from '../kernel/envelope.ts';
import type { JsonValue } from '../kernel/json.ts';

export interface Snapshot {
  readonly stream: StreamName;
  /** The last event folded into the state. */
  readonly revision: number;
  /** The developer raises it whenever the meaning of `state` changes. */
  readonly codeVersion: number;
  readonly state: JsonValue;
  /**
   * What may be large beside it. Saving and reading it holds up the event loop for a few parts at a time. Without parts
   * it is absent.
   */
  readonly parts?: Parts;
}

export interface Snapshots {
  /** Returns the stream's newest snapshot of this code version, at or before revision `upTo` if set, or null. */
  latest(stream: StreamName, codeVersion: number, upTo?: number): Promise<Snapshot | null>;
  /**
   * Saves a snapshot. Of the older ones of its code version it keeps the newest whole, and fewer the older they are
   * (core/kernel/thinned.ts): reads of past states start at them. Idempotent for a revision.
   */
  save(snapshot: Snapshot): Promise<void>;
}
