/**
 * What came for a subscriber and was not dealt with yet.
 *
 * Must stay true: it is bounded, by events and by bytes; what came before a failure is taken before the failure.
 */
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';

const BATCH_EVENTS_MAX = 1_000;
/** Positions passed over without an event to deliver, in one step. */
const PASSED_EVENTS_MAX = 10_000;
const BATCH_SIZE_BYTES_MAX = 16 * 1024 * 1024;

export interface Batch {
  readonly events: readonly RecordedEvent[];
  /** Of the last event passed over, delivered or not. */
  readonly position: LogPosition;
  /** The last event of Strata's passed over, if there was one. */
  readonly last: RecordedEvent | null;
}

export interface Inbox {
  /** Null for an event that only moves the position. */
  put(position: LogPosition, event: { readonly event: RecordedEvent; readonly wanted: boolean } | null): void;
  /** Everything that came; null when nothing did. Throws what `fail` was given, once nothing is left. */
  take(): Batch | null;
  /** Resolves when `take` has something to give or to throw. */
  arrived(): Promise<void>;
  /** Resolves when more may come. */
  room(): Promise<void>;
  fail(error: unknown): void;
  /** Lets whoever waits for room go. */
  close(): void;
}

export function createInbox(): Inbox {
  let events: RecordedEvent[] = [];
  let last: RecordedEvent | null = null;
  let position: LogPosition | null = null;
  let passed = 0;
  let bytes = 0;
  let failure: { readonly error: unknown } | null = null;
  let closed = false;
  let arrival = Promise.withResolvers<void>();
  let emptied = Promise.withResolvers<void>();

  const isFull = (): boolean =>
    events.length >= BATCH_EVENTS_MAX || passed >= PASSED_EVENTS_MAX || bytes >= BATCH_SIZE_BYTES_MAX;

  return {
    put: (at, received) => {
      position = at;
      passed += 1;
      if (received !== null) last = received.event;
      if (received?.wanted === true) {
        events.push(received.event);
        bytes += roughBytes(received.event);
      }
      arrival.resolve();
    },
    take: () => {
      if (position === null) {
        if (failure !== null) throw failure.error;
        return null;
      }
      const batch = { events, position, last };
      [events, position, last, passed, bytes] = [[], null, null, 0, 0];
      if (failure === null) arrival = Promise.withResolvers();
      emptied.resolve();
      emptied = Promise.withResolvers();
      return batch;
    },
    arrived: () => arrival.promise,
    room: async () => {
      while (isFull() && !closed) await emptied.promise;
    },
    fail: (error) => {
      failure ??= { error };
      arrival.resolve();
    },
    close: () => {
      closed = true;
      emptied.resolve();
    },
  };
}

/** The size of the data, near enough: only large events matter. */
function roughBytes({ data }: RecordedEvent): number {
  return JSON.stringify(data).length;
}
