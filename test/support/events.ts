/** Events, streams and subscribers for tests of the event log. Every id is new, so that suites can share one log. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  LOG_START,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamName,
  streamName,
} from '../../core/kernel/envelope.ts';
import { type AccountId, type EventId, timestamp, uuid } from '../../core/kernel/ids.ts';
import type { EventStore, Subscription } from '../../core/ports/event-store.ts';
import type { RecordPlace } from '../../core/ports/read-mark.ts';

export function newId(): EventId {
  return uuid(randomUUID());
}

export function newAccount(): AccountId {
  return uuid(randomUUID());
}

/** A new stream without events. */
export function newStream(category = 'repository'): StreamName {
  return streamName(category, randomUUID());
}

export function newEvent(overrides: Partial<NewEvent> = {}): NewEvent {
  return {
    id: newId(),
    type: 'ThingHappened',
    version: 1,
    accountId: newAccount(),
    occurredAt: timestamp('2026-11-21T10:00:00.000Z'),
    actor: { kind: 'system', id: 'test' },
    requestId: 'request-1',
    sourceAddressRef: null,
    causationId: null,
    isRecord: true,
    data: { note: 'hello' },
    ...overrides,
  };
}

/** Events of one stream as a log returns them, in appends of these sizes, at positions from 1. */
export function placedEvents(...counts: readonly number[]): readonly RecordedEvent[] {
  const stream = newStream();
  const places = counts.flatMap((appendCount) =>
    Array.from({ length: appendCount }, (_, appendIndex) => ({ appendIndex, appendCount })),
  );
  return places.map((place, revision) => {
    return { ...newEvent(), ...place, stream, revision, position: BigInt(revision + 1) as LogPosition };
  });
}

/** Returns the event as it was appended, without its stream, revision, position and place in the append. */
export function asNew(recorded: RecordedEvent): NewEvent {
  const { stream: _stream, revision: _revision, position: _position, ...rest } = recorded;
  const { appendIndex: _index, appendCount: _count, ...event } = rest;
  return event;
}

export interface Collector {
  readonly subscription: Subscription;
  readonly events: RecordedEvent[];
  /** The same events, in the batches in which the log delivered them. */
  readonly batches: (readonly RecordedEvent[])[];
  /** The start position, then the position delivered with each batch, in order. */
  readonly positions: LogPosition[];
  /** The place of the last record event passed, as delivered with each batch. */
  readonly lastRecords: (RecordPlace | null)[];
  /** Resolves when the condition holds; rejects when the subscription ends before. */
  until(condition: () => boolean): Promise<void>;
}

/** Subscribes and keeps every event that arrives. */
export function collect(store: EventStore, after: LogPosition, categories?: readonly string[]): Collector {
  const events: RecordedEvent[] = [];
  const batches: (readonly RecordedEvent[])[] = [];
  const positions: LogPosition[] = [after];
  const lastRecords: (RecordPlace | null)[] = [];
  const subscription = store.subscribe({
    after,
    ...(categories === undefined ? {} : { categories }),
    onEvents: (batch, position, lastRecord) => {
      lastRecords.push(lastRecord);
      events.push(...batch);
      batches.push(batch);
      positions.push(position);
    },
  });
  let ended = false;
  subscription.closed.then(
    () => {
      ended = true;
    },
    () => {
      ended = true;
    },
  );
  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (ended) throw new Error(`The subscription ended after ${events.length} events`);
      await sleep(5);
    }
  }
  return { subscription, events, batches, positions, lastRecords, until };
}

export function lastOf(positions: readonly LogPosition[]): LogPosition {
  return positions.at(-1) ?? LOG_START;
}
