/** Moving a log into the in-memory twin. */
import { createMemoryEventStore } from '../../adapters/memory/event-store.ts';
import { logImportContract } from './log-import.ts';

logImportContract('memory', async () => createMemoryEventStore());
