/** Moving a log into the in-memory implementation. */
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { logImportContract } from './log-import.ts';

logImportContract('memory', async () => createMemoryEventStore());
