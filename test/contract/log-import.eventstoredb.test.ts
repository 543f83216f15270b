/** Moving a log into EventStoreDB, which the protocol server imitates. */
import { createEventStoreDbEventStore } from '../../adapters/eventstoredb/event-store.ts';
import { cleanUp } from '../support/cleanup.ts';
import { startProtocolServer } from '../support/eventstoredb/protocol-server.ts';
import { keepLog } from '../support/log.ts';
import { logImportContract } from './log-import.ts';

logImportContract("EventStoreDB's client and the protocol server", async (context) => {
  const server = await startProtocolServer();
  cleanUp(context, () => server.stop());
  const store = createEventStoreDbEventStore({ address: server.url, folder: process.cwd(), log: keepLog() });
  cleanUp(context, () => store.close());
  return store;
});
