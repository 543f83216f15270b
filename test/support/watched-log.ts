/** An event log whose calls a test can count, hold back and fail; it can switch to another log, as a failover does. */
import type { RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import type { AppendRequest, EventStore } from '../../core/ports/event-store.ts';
import { createMemoryEventStore } from './memory/event-store.ts';

/** Functions that a test runs before a call, or between a call and its answer. When one throws, the call fails. */
export interface Interceptors {
  /** Runs before the append. */
  append?: ((request: AppendRequest) => Promise<void> | void) | undefined;
  /** Runs after the append was committed and before the caller has the answer. */
  appended?: ((request: AppendRequest) => Promise<void> | void) | undefined;
  /** Runs after the log returned the events and before the caller has them. */
  read?: ((stream: StreamName) => Promise<void> | void) | undefined;
  head?: (() => Promise<void> | void) | undefined;
  /** Runs after the log returned the head and before the caller has it. */
  headTaken?: (() => Promise<void> | void) | undefined;
  /** Runs before a subscriber gets its events; throwing ends the subscription with that error. */
  deliver?: ((events: readonly RecordedEvent[]) => Promise<void> | void) | undefined;
}

export interface WatchedLog extends EventStore {
  readonly on: Interceptors;
  readonly counts: { appends: number; reads: number; heads: number; subscriptions: number };
  /** Sends all later calls to another log; existing subscriptions stay on the previous one. */
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
        onEvents: async (events, ...passed) => {
          await on.deliver?.(events);
          await options.onEvents(events, ...passed);
        },
      });
    },
  };
}

export interface Gate {
  /** Resolves when the gate is opened. */
  readonly passed: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: () => resolve() };
}

/** Lets all pending callbacks run for five turns of the event loop. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
