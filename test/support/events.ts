/** Events, streams and subscribers for tests of the log. Every id is new, so suites can share one log. */
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

export function newId(): EventId {
  return uuid(randomUUID());
}

export function newAccount(): AccountId {
  return uuid(randomUUID());
}

/** A stream nobody has used yet. */
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
    data: { note: 'hello' },
    ...overrides,
  };
}

/** What the log should return for an event: the event itself, without where it stands. */
export function asNew(recorded: RecordedEvent): NewEvent {
  const { stream: _stream, revision: _revision, position: _position, ...event } = recorded;
  return event;
}

export interface Collector {
  readonly subscription: Subscription;
  readonly events: RecordedEvent[];
  /** Every position it was told, in the order it was told. */
  readonly positions: LogPosition[];
  /** Resolves when what was collected satisfies the condition; rejects when the subscription ends before. */
  until(condition: () => boolean): Promise<void>;
}

/** Subscribes and keeps whatever arrives. */
export function collect(store: EventStore, after: LogPosition, categories?: readonly string[]): Collector {
  const events: RecordedEvent[] = [];
  const positions: LogPosition[] = [after];
  const subscription = store.subscribe({
    after,
    ...(categories === undefined ? {} : { categories }),
    onEvents: (batch, position) => {
      events.push(...batch);
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
  return { subscription, events, positions, until };
}

export function lastOf(positions: readonly LogPosition[]): LogPosition {
  return positions.at(-1) ?? LOG_START;
}
