/**
 * Pruning on EventStoreDB: on the protocol server, which imitates it, and on real servers if STRATA_EVENTSTORE_SERVER
 * names a program that starts them.
 */
import { describe } from 'vitest';
import { createEventStoreDbEventStore } from '../../adapters/eventstoredb/event-store.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { openServer } from '../support/eventstoredb/open-log.ts';
import { serverProgram, startServerProgram } from '../support/eventstoredb/server-program.ts';
import { keepLog } from '../support/log.ts';
import { needs } from '../support/optional-suites.ts';
import { logPruningContract } from './log-pruning.ts';

function open(context: Ending, address: string) {
  const store = createEventStoreDbEventStore({ address, folder: process.cwd(), log: keepLog() });
  cleanUp(context, () => store.close());
  return { store, pruning: store.pruning };
}

logPruningContract("EventStoreDB's client and the protocol server", async (context) =>
  open(context, (await openServer(context)).url),
);

describe('with real servers', needs('STRATA_EVENTSTORE_SERVER'), () => {
  logPruningContract('EventStoreDB', async (context) =>
    open(context, await startServerProgram(context, serverProgram() ?? '')),
  );
});
