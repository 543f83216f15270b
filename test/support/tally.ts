/**
 * A small aggregate for tests of code that works with any aggregate: the sum of the added numbers, and how many they
 * are.
 */
import {
  type Decider,
  type Decision,
  type DomainEvent,
  type EventKinds,
  RECORD_V1,
  refuse,
} from '../../core/kernel/decider.ts';
import { type StreamName, streamName } from '../../core/kernel/envelope.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { newEvent } from './events.ts';

export type TallyEvent = DomainEvent<'Added', { readonly n: number }> | DomainEvent<'Spoilt', Record<never, never>>;

export interface Tally {
  readonly sum: number;
  readonly count: number;
}

const kinds: EventKinds<TallyEvent> = { Added: RECORD_V1, Spoilt: RECORD_V1 };

/** How much one event adds to a tally's size in memory. */
export const BYTES_PER_EVENT = 1_000;

interface TallySnapshot {
  readonly sum: number;
  readonly count: number;
}

export const tallies: Decider<Tally, TallyEvent> = {
  category: 'tally',
  kinds,
  initial: { sum: 0, count: 0 },
  evolve(state, event) {
    if (event.type === 'Spoilt') throw new TypeError('This event cannot be folded');
    return { sum: state.sum + event.data.n, count: state.count + 1 };
  },
  snapshots: {
    version: 1,
    write: ({ sum, count }) => ({ sum, count }),
    read: (snapshot: JsonObject) => {
      const { sum, count } = snapshot as JsonObject & TallySnapshot;
      return { sum, count };
    },
  },
  sizeBytes: ({ count }) => count * BYTES_PER_EVENT,
};

export function add(n: number): (state: Tally) => Decision<TallyEvent> {
  return () => ({ events: [{ type: 'Added', data: { n } }] });
}

/** Adds the number, or refuses if the sum would exceed the bound. */
export function addUpTo(bound: number, n: number): (state: Tally) => Decision<TallyEvent> {
  return (state) =>
    state.sum + n > bound ? refuse({ code: 'email-taken' }) : { events: [{ type: 'Added', data: { n } }] };
}

export function tallyStream(id: string): StreamName {
  return streamName('tally', id);
}

/** Appends to a tally's stream as another node would: directly to the log, in one append. */
export async function addInLog(log: EventStore, id: string, ...numbers: readonly number[]): Promise<void> {
  await appendInLog(
    log,
    id,
    numbers.map((n) => ({ type: 'Added', data: { n } })),
  );
}

export async function appendInLog(
  log: EventStore,
  id: string,
  events: readonly { readonly type: string; readonly data: JsonObject }[],
): Promise<void> {
  const stream = tallyStream(id);
  const [last] = await log.readStream(stream, { direction: 'backwards', limit: 1 });
  const result = await log.append({
    stream,
    expected: last?.revision ?? 'none',
    events: events.map((event) => newEvent(event)),
  });
  if (result.outcome !== 'appended') throw new Error('An append of the test conflicted with another');
}
