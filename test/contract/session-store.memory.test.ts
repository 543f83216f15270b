/** The session store's contract on the in-memory implementation. */
import { createMemorySessionStore } from '../support/memory/session-store.ts';
import { sessionStoreContract } from './session-store.ts';

sessionStoreContract('memory', async () => createMemorySessionStore());
