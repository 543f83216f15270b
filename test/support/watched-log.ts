/** A log whose calls a test can count, hold up and fail, and which it can exchange for another as a failover does. */
import { createMemoryEventStore } from './memory/event-store.ts';
import type { RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import type { AppendRequest, EventStore } from '../../core/ports/event-store.ts';

/** What a test puts before a call, or between a call and its answer; throwing fails it. */
export interface Interceptors {
  /** Nothing was appended yet. */
  append?: ((request: AppendRequest) => Promise<void> | void) | undefined;
  /** It was appended, and the caller does not know yet. */
  appended?: ((request: AppendRequest) => Promise<void> | void) | undefined;
  /** The answer was taken from the log, and is on its way. */
  read?: ((stream: StreamName) => Promise<void> | void) | undefined;
  head?: (() => Promise<void> | void) | undefined;
  /** The head was taken, and is on its way. */
  headTaken?: (() => Promise<void> | void) | undefined;
  /** Before a subscriber gets its events; throwing breaks its subscription. */
  deliver?: ((events: readonly RecordedEvent[]) => Promise<void> | void) | undefined;
}

export interface WatchedLog extends EventStore {
  readonly on: Interceptors;
  readonly counts: { appends: number; reads: number; heads: number; subscriptions: number };
  /** From now on all calls go to another log; subscriptions stay with the one they were made on. */
  exchange(store: EventStore): void;
}

export function watchLog(first: EventStore = createMemoryEventStore()): WatchedLog {
  let store = first;
  const on: Interceptors = {};
  const counts = { appends: 0, reads: 0, heads: 0, subscriptions: 0 };
  return {
    on,
    counts,
    exchange: (other) => {
      store = other;
    },
    append: async (request) => {
      counts.appends += 1;
      await on.append?.(request);
      const result = await store.append(request);
      if (result.outcome === 'appended') await on.appended?.(request);
      return result;
    },
    readStream: async (stream, options) => {
      counts.reads += 1;
      const events = await store.readStream(stream, options);
      await on.read?.(stream);
      return events;
    },
    readAll: (after, limit) => store.readAll(after, limit),
    head: async () => {
      counts.heads += 1;
      await on.head?.();
      const head = await store.head();
      await on.headTaken?.();
      return head;
    },
    subscribe: (options) => {
      counts.subscriptions += 1;
      return store.subscribe({
        ...options,
        onEvents: async (events, position) => {
          await on.deliver?.(events);
          await options.onEvents(events, position);
        },
      });
    },
  };
}

export interface Gate {
  /** Resolves once the gate is open. */
  readonly passed: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: () => resolve() };
}

/** Lets everything run that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
