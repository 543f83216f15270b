/**
 * The event log: the source of truth of the service (docs/architecture.md, invariant 1).
 *
 * Invariants of every adapter (one contract suite runs on each):
 * - an append is atomic over its events, and happens only if the stream and the guards are at the expected revisions;
 * - a conflict is a value, not an error, and holds the actual revision;
 * - an append is idempotent for the same event ids and the same expectation, so a caller whose answer was lost retries;
 * - a subscriber receives every event exactly once, in commit order, and the subscription resumes after an outage;
 * - readers see whole appends: neither a page of a read nor a batch of a subscription ends inside one;
 * - positions only grow; as soon as `append` has resolved, readers of the whole log see the event too.
 */
import { CodedError } from '../kernel/coded-error.ts';
import { createConcurrencyLimit } from '../kernel/concurrency-limit.ts';
import type { LogPosition, NewEvent, RecordedEvent, StreamName } from '../kernel/envelope.ts';
import type { RecordPlace } from './read-mark.ts';

/** The revision of a stream's last event, or `none` for a stream without events. There is no value for "any". */
export type ExpectedRevision = number | 'none';

/** Another stream, and the revision it must be at when the append commits. */
export interface StreamGuard {
  readonly stream: StreamName;
  readonly revision: ExpectedRevision;
}

export interface AppendRequest {
  readonly stream: StreamName;
  readonly expected: ExpectedRevision;
  /**
   * At least one event. Their size, about the UTF-8 length of the canonical JSON of this list, must be below
   * `APPEND_SIZE_BYTES_MAX` (core/ports/append-check.ts counts it).
   */
  readonly events: readonly NewEvent[];
  readonly guards?: readonly StreamGuard[];
  /**
   * Whether the deadline of this append has passed. `append` asks right before each time that it sends the events, and
   * sends nothing once the answer is true. The function neither waits nor throws. Without it there is no deadline.
   */
  readonly isTooLate?: () => boolean;
}

export type AppendResult =
  | {
      readonly outcome: 'appended';
      /** The revision and position of the last event of this append. */
      readonly revision: number;
      readonly position: LogPosition;
    }
  | {
      readonly outcome: 'conflict';
      /** The stream that was at another revision: the stream appended to, or a guard's. */
      readonly stream: StreamName;
      readonly actual: ExpectedRevision;
    };

export interface ReadStreamOptions {
  readonly direction: 'forwards' | 'backwards';
  /** The first revision to return, inclusive. Default: the stream's first forwards, its last backwards. */
  readonly from?: number;
  /** How many events to return, 1 or more; the events that complete the last one's append are returned in addition. */
  readonly limit: number;
}

export interface SubscribeOptions {
  /** The position of the last event that the subscriber has seen; `LOG_START` for all events. */
  readonly after: LogPosition;
  /** Only events of streams in these categories are delivered; events of all streams when absent. */
  readonly categories?: readonly string[];
  /**
   * True for a subscriber that is content to get new events some milliseconds late, several appends in one batch,
   * unless it is pulled. An adapter may deliver immediately.
   */
  readonly lingers?: boolean;
  /**
   * Called with events in log order; the next call waits until the promise has settled. A batch has at most 1,000
   * events, and those that complete the append of the last one. `position` is at or after the last event. It also moves
   * past events that the filter omits, then with an empty batch, and never lies inside an append. `lastRecord` is the
   * last record event since the previous batch, delivered or omitted; null if there was none.
   * A rejection ends the subscription, and `closed` rejects with it. The callback must not wait for `close`.
   */
  readonly onEvents: (
    events: readonly RecordedEvent[],
    position: LogPosition,
    lastRecord: RecordPlace | null,
  ) => Promise<void> | void;
}

export interface Subscription {
  /**
   * Hints that the log reaches at least to the position: unless it has passed it, the subscription reads now instead of
   * at the next notification or poll.
   */
  pull(position: LogPosition): void;
  /** Ends the subscription; resolves when `onEvents` will not be called again, also if the subscription had failed. */
  close(): Promise<void>;
  /**
   * Resolves after `close`. Rejects with the error of `onEvents`, with `log-diverged`, or with `log-unavailable` when
   * the log refuses to be read.
   */
  readonly closed: Promise<void>;
}

export interface EventStore {
  /**
   * Appends at one commit point. The same ids with the same expectation and content return the first result again; the
   * same ids at the same place with other content conflict. If the outcome is still unknown after the adapter's own
   * retries, it throws `EventStoreError` with `append-outcome-unknown`: the caller may retry with the same event ids.
   * Past its deadline, an append throws `append-too-late` if it was never sent, or `append-outcome-unknown` if an
   * earlier try may have landed.
   */
  append(request: AppendRequest): Promise<AppendResult>;
  /**
   * Commits many appends in one call, in the order passed: after a failure, only appends at the end are missing. An
   * adapter omits this method if it has nothing faster than single appends; the function `appendInOrder` below handles
   * both. Only for an import, which is then the only writer and has no deadlines. After a conflict the later appends
   * may or may not be done.
   */
  appendInOrder?(requests: readonly AppendRequest[]): Promise<readonly AppendResult[]>;
  /**
   * Returns events of one stream; an empty list for a stream without events. A page ends with a whole append, in the
   * direction of reading: with a limit of 1 it holds three events if these three were one append. A page of fewer
   * events than the limit is the last. A page begins exactly at `from`, even inside an append.
   */
  readStream(stream: StreamName, options: ReadStreamOptions): Promise<readonly RecordedEvent[]>;
  /** Returns `limit` events of all streams after a position, in log order, and those that complete the last append. */
  readAll(after: LogPosition, limit: number): Promise<readonly RecordedEvent[]>;
  /**
   * Returns the events at these positions, in any order, without those that do not exist. An adapter omits this method
   * if it has no index of positions; the function `readPlaces` below handles both.
   */
  readPositions?(positions: readonly LogPosition[]): Promise<readonly RecordedEvent[]>;
  subscribe(options: SubscribeOptions): Subscription;
  /** Reads the position of the last committed event; `LOG_START` if the log is empty. */
  head(): Promise<LogPosition>;
}

/**
 * Appends in the order passed, each only after all before it. Returns the results up to and including the first that
 * is not `appended`. Throws as `append` does: then the log may hold the first of them, and the caller may repeat the
 * call.
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

/** Where an event is. */
export type EventPlace = Pick<RecordedEvent, 'stream' | 'revision' | 'position'>;

/** Streams that are read at the same time, where an adapter cannot read positions. */
const STREAMS_READ_AT_ONCE = 8;
/**
 * Events between two wanted ones are read as well while that is cheaper than another read. Internal: both ways give the
 * same events.
 */
const UNWANTED_BETWEEN_MAX = 20;

/** Returns the events at these places, in the order of the places. Throws `log-diverged` if one does not exist. */
export async function readPlaces(
  store: Pick<EventStore, 'readStream' | 'readPositions'>,
  places: readonly EventPlace[],
): Promise<readonly RecordedEvent[]> {
  const found =
    store.readPositions === undefined
      ? await readRuns(store, places)
      : await store.readPositions(places.map(({ position }) => position));
  const byPosition = new Map(found.map((event) => [event.position, event]));
  return places.map(({ stream, revision, position }) => {
    const event = byPosition.get(position);
    if (event !== undefined && event.stream === stream && event.revision === revision) return event;
    throw new EventStoreError('log-diverged', `The log does not hold revision ${revision} of ${stream} at ${position}`);
  });
}

async function readRuns(
  store: Pick<EventStore, 'readStream'>,
  places: readonly EventPlace[],
): Promise<readonly RecordedEvent[]> {
  const runs: { readonly stream: StreamName; readonly from: number; to: number }[] = [];
  const inOrder = places.toSorted((a, b) =>
    a.stream === b.stream ? a.revision - b.revision : a.stream < b.stream ? -1 : 1,
  );
  for (const { stream, revision } of inOrder) {
    const run = runs.at(-1);
    if (run?.stream === stream && revision - run.to <= UNWANTED_BETWEEN_MAX) run.to = revision;
    else runs.push({ stream, from: revision, to: revision });
  }
  const read = ({ stream, from, to }: (typeof runs)[number]): Promise<readonly RecordedEvent[]> =>
    store.readStream(stream, { direction: 'forwards', from, limit: to - from + 1 });
  const limited = createConcurrencyLimit(STREAMS_READ_AT_ONCE);
  return (await Promise.all(runs.map((run) => limited(() => read(run))))).flat();
}

export type EventStoreErrorCode =
  /** The log cannot be reached or is overloaded; nothing was appended. */
  | 'log-unavailable'
  /** The events may or may not be in the log: retry with the same event ids. */
  | 'append-outcome-unknown'
  /** This node's clock differs from the log's by more than `CLOCK_DIFFERENCE_MS_MAX`; nothing was appended. */
  | 'clock-differs'
  /** The deadline of the append passed before it was sent; nothing was appended. */
  | 'append-too-late'
  | 'append-too-large'
  /** The event is malformed, or another event has its id. */
  | 'invalid-event'
  /** What the log holds is no event: somebody changed it. */
  | 'event-unreadable'
  /** The log no longer holds the last event that a subscription read: a failover or a restore lost the log's tail. */
  | 'log-diverged';

/** The log could not serve the call. `code` is stable, the message is for operators. */
export class EventStoreError extends CodedError<EventStoreErrorCode> {
  override readonly name = 'EventStoreError';
  /** Where the log holds what cannot be read; null for every other code. */
  readonly unreadableAt: LogPosition | null;
  constructor(code: EventStoreErrorCode, message: string, options?: { cause?: unknown; unreadableAt?: LogPosition }) {
    super(code, message, options);
    this.unreadableAt = options?.unreadableAt ?? null;
  }
}
