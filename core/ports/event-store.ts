/**
 * The log of events: the only truth of the service (architecture, invariant 1).
 *
 * Must stay true on every adapter (one contract suite runs on each):
 * - an append is atomic over its events and happens only at the expected revision, guards included;
 * - a conflict is a value, not an error, and says what the revision really is;
 * - the same event ids with the same expectation are idempotent, so an append whose answer was lost is retried;
 * - a subscriber sees every event exactly once, in commit order, and resumes by itself after an outage;
 * - positions only grow, and an event is visible to readers of all no later than to its own appender.
 */
import type { LogPosition, NewEvent, RecordedEvent, StreamName } from '../kernel/envelope.ts';

/** The revision of a stream's last event, or `none` while it has no event. There is no "any". */
export type ExpectedRevision = number | 'none';

/** Another stream that must stand at a revision at the moment of the append. */
export interface StreamGuard {
  readonly stream: StreamName;
  readonly revision: ExpectedRevision;
}

export interface AppendRequest {
  readonly stream: StreamName;
  readonly expected: ExpectedRevision;
  /**
   * At least one. Their size, the UTF-8 length of the canonical JSON of this list, stays below
   * `APPEND_SIZE_BYTES_MAX` (core/ports/append-check.ts).
   */
  readonly events: readonly NewEvent[];
  readonly guards?: readonly StreamGuard[];
}

export type AppendResult =
  | {
      readonly outcome: 'appended';
      /** Revision and position of the last event of this append. */
      readonly revision: number;
      readonly position: LogPosition;
    }
  | {
      readonly outcome: 'conflict';
      /** The stream that stood elsewhere: the one appended to, or a guard's. */
      readonly stream: StreamName;
      readonly actual: ExpectedRevision;
    };

export interface ReadStreamOptions {
  readonly direction: 'forwards' | 'backwards';
  /** The first revision to return, inclusive; the default is the stream's first, or its last backwards. */
  readonly from?: number;
  /** How many events at most, 1 or more. */
  readonly limit: number;
}

export interface SubscribeOptions {
  /** The position of the last event already seen; `LOG_START` for all. */
  readonly after: LogPosition;
  /** Only streams of these categories are delivered; all of them when absent. */
  readonly categories?: readonly string[];
  /**
   * Called with events in log order, the next batch only after the promise settled. `position` is at or
   * beyond the last event: it also moves over what the filter leaves out, then with an empty batch.
   * A rejection stops the subscription and is reported by `closed`. It must not wait for `close`.
   */
  readonly onEvents: (events: readonly RecordedEvent[], position: LogPosition) => Promise<void> | void;
}

export interface Subscription {
  /** A hint that newer events exist: look now rather than at the next notification or poll. */
  pull(): void;
  /** Ends the subscription; resolves when `onEvents` will not be called again, also where it broke before. */
  close(): Promise<void>;
  /** Settles when the subscription ends: resolved by `close`, rejected by what `onEvents` threw or `log-diverged`. */
  readonly closed: Promise<void>;
}

export interface EventStore {
  /**
   * Appends at one commit point. The same ids with the same expectation and content give the first result
   * again; at the same place with other content they conflict. An append whose outcome stays unknown after the adapter's own retries
   * throws `EventStoreError` with `append-outcome-unknown`: the caller may retry with the same event ids.
   */
  append(request: AppendRequest): Promise<AppendResult>;
  /**
   * Many appends in one go, committed in the order given: what is missing after a failure is missing from the end.
   * Left out where appending them one by one is the best there is: `appendInOrder` below does either. For an import,
   * the only writer there is; after a conflict those that follow may or may not have been appended.
   */
  appendInOrder?(requests: readonly AppendRequest[]): Promise<readonly AppendResult[]>;
  /** Events of one stream; an empty list for a stream that has none. */
  readStream(stream: StreamName, options: ReadStreamOptions): Promise<readonly RecordedEvent[]>;
  /** Events of all streams after a position, in log order, at most `limit`. */
  readAll(after: LogPosition, limit: number): Promise<readonly RecordedEvent[]>;
  subscribe(options: SubscribeOptions): Subscription;
  /** The position of the last committed event, read now; `LOG_START` when the log is empty. */
  head(): Promise<LogPosition>;
}

/**
 * Appends in the order given, each only after all before it; one result for each, up to the first that is none of
 * `appended`. Throws as `append` does; then some of the first were appended, and the same call may be made again.
 */
export async function appendInOrder(
  store: Pick<EventStore, 'append' | 'appendInOrder'>,
  requests: readonly AppendRequest[],
): Promise<readonly AppendResult[]> {
  if (store.appendInOrder !== undefined) return store.appendInOrder(requests);
  const results: AppendResult[] = [];
  for (const request of requests) {
    const result = await store.append(request);
    results.push(result);
    if (result.outcome !== 'appended') break;
  }
  return results;
}

export type EventStoreErrorCode =
  /** The log cannot be reached or is overloaded; nothing was appended. */
  | 'log-unavailable'
  /** It may or may not have been appended: retry with the same event ids. */
  | 'append-outcome-unknown'
  | 'append-too-large'
  /** The event breaks its own form, or its id is already another event's. */
  | 'invalid-event'
  /** The log no longer holds the event a subscription stands at: its tail was lost in a failover or a restore. */
  | 'log-diverged';

/** The log cannot do what was asked; `code` is stable, the message is for operators. */
export class EventStoreError extends Error {
  override readonly name = 'EventStoreError';
  readonly code: EventStoreErrorCode;
  constructor(code: EventStoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
