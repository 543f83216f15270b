/** The event store's contract on the in-memory implementation. */
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { eventStoreContract } from './event-store.ts';

eventStoreContract('memory', async () => ({ store: createMemoryEventStore(), close: async () => {} }));
