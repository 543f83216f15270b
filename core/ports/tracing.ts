/**
 * Traces: what a request waits for, part by part, and what follows behind it. A server without tracing has no
 * `Tracing`, and wraps nothing.
 *
 * Invariants: a trace holds names of parts, codes and figures: no text of a user, no secret, and no message of an
 * error. What is traced ends as it ends without a trace, and never waits for it.
 */
import type { EventId } from '../kernel/ids.ts';

/** What the log tells of an event that a trace needs. */
interface TracedEvent {
  readonly id: EventId;
}

/** What has a span of its own, beside requests. */
export type TracedPart =
  | 'barrier'
  | 'append'
  | 'git archive'
  | 'git open'
  | 'git receive'
  | 'git upload-pack'
  | 'projection'
  | 'store delete'
  | 'store get'
  | 'store head'
  | 'store put'
  | 'webhook';

export interface Tracing {
  /** Runs the work as a part of the trace in which it is called; outside of a trace it only runs it. */
  part<Result>(name: TracedPart, work: () => Promise<Result>): Promise<Result>;
  /** The same for bytes that are made while they are read: from the first to the last. */
  stream(name: TracedPart, bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** The same for an append of these events, which `applied` then knows. */
  append<Result>(events: readonly TracedEvent[], work: () => Promise<Result>): Promise<Result>;
  /** Adds to the traces of the appends of this process that a read model has just committed these events. */
  applied(model: string, events: readonly TracedEvent[], durationMs: number): void;
  /** Runs the work in a trace of its own. */
  alone<Result>(name: TracedPart, work: () => Promise<Result>): Promise<Result>;
  /** Returns the value of the header `traceparent` for a request that is sent now; null outside of a trace. */
  traceparent(): string | null;
}
