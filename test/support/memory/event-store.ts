/**
 * The event log in memory, for tests.
 *
 * Invariants: it passes the same contract suite as the durable logs; it decides an append in one synchronous step.
 */
import {
  categoryOf,
  LOG_START,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamName,
} from '../../../core/kernel/envelope.ts';
import { canonicalJson, type JsonObject } from '../../../core/kernel/json.ts';
import { missingOfAppend } from '../../../core/kernel/whole-appends.ts';
import { checkAppend, tooLate } from '../../../core/ports/append-check.ts';
import {
  type AppendRequest,
  type AppendResult,
  type EventStore,
  EventStoreError,
  type ExpectedRevision,
  type SubscribeOptions,
  type Subscription,
} from '../../../core/ports/event-store.ts';
import { lastRecordOf } from '../../../core/runtime/read-mark.ts';

const BATCH_EVENTS_MAX = 1_000;

/** Makes a new, empty log. It needs no closing. */
export function createMemoryEventStore(): EventStore {
  const log: RecordedEvent[] = [];
  const streams = new Map<StreamName, RecordedEvent[]>();
  const byId = new Map<string, RecordedEvent>();
  const subscriptions = new Set<Subscription>();

  function revisionOf(stream: StreamName): ExpectedRevision {
    const events = streams.get(stream);
    return events === undefined ? 'none' : events.length - 1;
  }

  function append(request: AppendRequest): AppendResult {
    const { dataTexts } = checkAppend(request);
    if (request.isTooLate?.() === true) throw tooLate(request);
    const { stream, expected, events } = request;
    const actual = revisionOf(stream);
    const first = expected === 'none' ? 0 : expected + 1;
    const there = streams.get(stream)?.slice(first, first + events.length) ?? [];
    const last = there.at(-1);
    if (last !== undefined && there.length === events.length && events.every((e, i) => isSame(e, there[i]))) {
      return { outcome: 'appended', revision: last.revision, position: last.position };
    }
    if (actual !== expected) return { outcome: 'conflict', stream, actual };
    for (const guard of request.guards ?? []) {
      const guarded = revisionOf(guard.stream);
      if (guarded !== guard.revision) return { outcome: 'conflict', stream: guard.stream, actual: guarded };
    }
    const reused = events.find((event) => byId.has(event.id));
    if (reused !== undefined) throw new EventStoreError('invalid-event', `Event id ${reused.id} is already taken`);
    const history = streams.get(stream) ?? [];
    streams.set(stream, history);
    const appendCount = events.length;
    for (const [index, event] of events.entries()) {
      const data = dataTexts[index] ?? '';
      history.push(record(event, data, { stream, revision: first + index, appendIndex: index, appendCount }));
    }
    const position = BigInt(log.length) as LogPosition;
    for (const subscription of subscriptions) subscription.pull(position);
    return { outcome: 'appended', revision: first + events.length - 1, position };
  }

  function record(event: NewEvent, dataText: string, place: Omit<Place, 'position'>): RecordedEvent {
    // Parses the data from its text, as a durable log does.
    const data = JSON.parse(dataText) as JsonObject;
    const position = BigInt(log.length + 1) as LogPosition;
    const recorded: RecordedEvent = { ...event, data, ...place, position };
    log.push(recorded);
    byId.set(event.id, recorded);
    return recorded;
  }

  return {
    append: async (request) => append(request),
    readStream: async (stream, { direction, from, limit }) => {
      const events = streams.get(stream) ?? [];
      if (direction === 'forwards') return page(events, from ?? 0, limit);
      const end = Math.min(from ?? events.length - 1, events.length - 1) + 1;
      const start = Math.max(0, end - limit);
      return events.slice(start - (events[start]?.appendIndex ?? 0), end).reverse();
    },
    readAll: async (after, limit) => page(log, Number(after), limit),
    head: async () => log.at(-1)?.position ?? LOG_START,
    subscribe: (options) => {
      const subscription = subscribe(log, options);
      subscriptions.add(subscription);
      const forget = () => subscriptions.delete(subscription);
      subscription.closed.then(forget, forget);
      return subscription;
    },
  };
}

type Place = Omit<RecordedEvent, keyof NewEvent>;

/** Returns up to `limit` events from an index on, and further events until the last append is complete. */
function page(events: readonly RecordedEvent[], from: number, limit: number): readonly RecordedEvent[] {
  const last = events[Math.min(from + limit, events.length) - 1];
  return events.slice(from, from + limit + (last === undefined ? 0 : missingOfAppend(last)));
}

function isSame(event: NewEvent, recorded: RecordedEvent | undefined): boolean {
  return recorded !== undefined && contentOf(recorded) === contentOf(event);
}

function contentOf(event: NewEvent): string {
  const { id, type, version, accountId, occurredAt, requestId, sourceAddressRef, causationId, isRecord, data } = event;
  const actor = { kind: event.actor.kind, id: event.actor.id };
  return canonicalJson({
    ...{ id, type, version, accountId, occurredAt },
    ...{ actor, requestId, sourceAddressRef, causationId, isRecord, data },
  });
}

function subscribe(log: readonly RecordedEvent[], options: SubscribeOptions): Subscription {
  const categories = options.categories === undefined ? null : new Set(options.categories);
  let closing = false;
  let wake: (() => void) | null = null;

  async function run(): Promise<void> {
    let position = options.after;
    while (!closing) {
      // A position beyond the end means that the subscriber has read another log.
      if (position > log.length) throw new EventStoreError('log-diverged', `The log ends before ${position}`);
      const batch = page(log, Number(position), BATCH_EVENTS_MAX);
      const end = batch.at(-1);
      if (end === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      position = end.position;
      const wanted = batch.filter((event) => categories === null || categories.has(categoryOf(event.stream)));
      await options.onEvents(wanted, position, lastRecordOf(batch));
    }
  }

  // Runs after the caller has received its subscription.
  const closed = Promise.resolve().then(run);
  const pull = () => wake?.();
  return {
    pull,
    close: async () => {
      closing = true;
      pull();
      // `closed` reports why the subscription failed, if it did.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}
