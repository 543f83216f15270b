/** Pruning on EventStoreDB, which the protocol server imitates. */
import { createEventStoreDbEventStore } from '../../adapters/eventstoredb/event-store.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { startProtocolServer } from '../support/eventstoredb/protocol-server.ts';
import { keepLog } from '../support/log.ts';
import { logPruningContract } from './log-pruning.ts';

function open(context: Ending, address: string) {
  const store = createEventStoreDbEventStore({ address, folder: process.cwd(), log: keepLog() });
  cleanUp(context, () => store.close());
  return { store, pruning: store.pruning };
}

logPruningContract("EventStoreDB's client and the protocol server", async (context) => {
  const server = await startProtocolServer();
  cleanUp(context, () => server.stop());
  return open(context, server.url);
});
