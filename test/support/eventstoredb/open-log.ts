/** Opens logs on protocol servers; both are closed when the test ends. */
import {
  createEventStoreDbEventStore,
  type EventStoreDbEventStore,
  type EventStoreDbOptions,
} from '../../../adapters/eventstoredb/event-store.ts';
import { cleanUp, type Ending } from '../cleanup.ts';
import { type KeptLog, keepLog } from '../log.ts';
import { type ProtocolServer, type ProtocolServerOptions, startProtocolServer } from './protocol-server.ts';

export interface OpenLog {
  readonly server: ProtocolServer;
  readonly store: EventStoreDbEventStore;
  readonly log: KeptLog;
}

export async function openServer(context: Ending, options?: ProtocolServerOptions): Promise<ProtocolServer> {
  const server = await startProtocolServer(options);
  cleanUp(context, () => server.stop());
  return server;
}

export function openStore(
  context: Ending,
  address: string,
  options: Partial<EventStoreDbOptions> = {},
): { readonly store: EventStoreDbEventStore; readonly log: KeptLog } {
  const log = keepLog();
  const store = createEventStoreDbEventStore({ address, folder: '/', log, ...options });
  cleanUp(context, () => store.close());
  return { store, log };
}

/** Opens a server and a log on it with short time limits. */
export async function openLog(context: Ending, options: Partial<EventStoreDbOptions> = {}): Promise<OpenLog> {
  const server = await openServer(context);
  const fast = { appendAttemptSpanMs: 300, readSilenceMs: 300, connectSpanMs: 300, subscriptionQuietMs: 500 };
  return { server, ...openStore(context, server.url, { ...fast, ...options }) };
}
