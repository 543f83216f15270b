/** The event store's contract on the in-memory twin. */
import { createMemoryEventStore } from '../../adapters/memory/event-store.ts';
import { eventStoreContract } from './event-store.ts';

eventStoreContract('memory', async () => ({ store: createMemoryEventStore(), close: async () => {} }));
