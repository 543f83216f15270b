/**
 * Snapshots of long streams: a start for folding that is not the first event.
 *
 * Must stay true: disposable. Losing one, or all, costs time and changes no answer. A snapshot of another
 * code version is ignored.
 */
import type { StreamName } from '../kernel/envelope.ts';
import type { JsonValue } from '../kernel/json.ts';

export interface Snapshot {
  readonly stream: StreamName;
  /** The last event folded into the state. */
  readonly revision: number;
  /** Changes whenever the meaning of `state` does. */
  readonly codeVersion: number;
  readonly state: JsonValue;
}

export interface Snapshots {
  /** The newest snapshot of the stream in this code version, at or before `upTo` where given, or null. */
  latest(stream: StreamName, codeVersion: number, upTo?: number): Promise<Snapshot | null>;
  /** Keeps it beside older ones, which serve time travel. The same revision again is no error. */
  save(snapshot: Snapshot): Promise<void>;
}
