/**
 * The contract of core/ports/event-store.ts, run on every adapter.
 *
 * Invariants: each test uses new streams and starts at the current head, so the suite also runs on a log that
 * others write to.
 */
import { afterAll, beforeAll, describe } from 'vitest';
import type { EventStore } from '../../core/ports/event-store.ts';
import { appendingContract } from './event-store/appending.ts';
import { limitsContract } from './event-store/limits.ts';
import { readingContract } from './event-store/reading.ts';
import { subscribingContract } from './event-store/subscribing.ts';

export interface OpenEventStore {
  readonly store: EventStore;
  close(): Promise<void>;
}

/** Declares the suite; `open` is called once. */
export function eventStoreContract(adapter: string, open: () => Promise<OpenEventStore>): void {
  describe(`the event log on ${adapter}`, () => {
    let opened: OpenEventStore;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    const store = () => opened.store;
    appendingContract(store);
    limitsContract(store);
    readingContract(store);
    subscribingContract(store);
  });
}
