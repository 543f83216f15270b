/**
 * The event store's contract on EventStoreDB's client: against the protocol server, which imitates EventStoreDB, and
 * with the same assertions against a real server if STRATA_EVENTSTORE_URL names one, or STRATA_EVENTSTORE_SERVER a
 * program that starts one.
 */
import { describe } from 'vitest';
import { createEventStoreDbEventStore } from '../../adapters/eventstoredb/event-store.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { startProtocolServer } from '../support/eventstoredb/protocol-server.ts';
import { serverProgram, startServerProgram } from '../support/eventstoredb/server-program.ts';
import { keepLog } from '../support/log.ts';
import { needs } from '../support/optional-suites.ts';
import { eventStoreContract } from './event-store.ts';

eventStoreContract("EventStoreDB's client and the protocol server", async () => {
  const server = await startProtocolServer();
  // A real server also appends system events now and then, such as its statistics.
  const events = setInterval(server.appendSystemEvent, 20);
  const store = createEventStoreDbEventStore({ address: server.url, folder: process.cwd(), log: keepLog() });
  return {
    store,
    close: async () => {
      clearInterval(events);
      await store.close();
      await server.stop();
    },
  };
});

describe('with a real server', needs('STRATA_EVENTSTORE_URL'), () => {
  eventStoreContract('EventStoreDB', async () => {
    const address = process.env['STRATA_EVENTSTORE_URL'] ?? '';
    const store = createEventStoreDbEventStore({ address, folder: process.cwd(), log: keepLog() });
    return { store, close: () => store.close() };
  });
});

describe('with a real server of its own', needs('STRATA_EVENTSTORE_SERVER'), () => {
  const ending = suiteEnding();
  eventStoreContract('a new EventStoreDB', async () => {
    const address = await startServerProgram(ending, serverProgram() ?? '');
    const store = createEventStoreDbEventStore({ address, folder: process.cwd(), log: keepLog() });
    return { store, close: () => store.close() };
  });
});
