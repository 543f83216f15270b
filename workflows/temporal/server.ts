/**
 * The connection to Temporal's server, and what is known of the server: whether it answers, and since when.
 *
 * Invariants: no call waits longer than its bound, and none is repeated here: the caller decides. A server that
 * answers again is reached within seconds.
 */
import { Client, Connection } from '@temporalio/client';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock, Pause } from '../../core/ports/clock.ts';
import { connectionOptions, type TemporalConnection } from './connection-options.ts';

export interface Reachability {
  /** Whether the namespace answered the last probe; false before the first answer. */
  readonly reachable: boolean;
  /** Since when `reachable` has its value. */
  readonly since: Timestamp;
}

/** A server, identified by its namespace's id; a server that lost its data has another id. */
export interface ServerInstance {
  readonly id: string;
  /** Aborted when a server with another id answers. */
  readonly replaced: AbortSignal;
}

export interface TemporalServerOptions extends TemporalConnection {
  readonly namespace: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly pause: Pause;
  /** Called each time the server stops answering, with the reason. */
  readonly onLost: (cause: unknown) => void;
}

export interface TemporalServer {
  readonly client: Client;
  reachability(): Reachability;
  /** Makes one call with a bound on its time; rejects if the server does not answer by then. */
  call<Answer>(make: () => Promise<Answer>): Promise<Answer>;
  /** Asks the server for its identity. */
  identify(): Promise<ServerInstance>;
  close(): Promise<void>;
}

/** How long a call to Temporal may take. Internal: no request waits for Temporal. */
const CALL_MS_MAX = 3_000;
/** The pauses between probes: while the server answers, and while it does not. */
const PROBE_MS = 5_000;
const PROBE_AGAIN_MS = 1_000;
/**
 * By default, gRPC waits up to two minutes before it reconnects a broken connection. Internal: it is the pace of
 * attempts.
 */
const RECONNECT_MS_MAX = 2_000;

export function openTemporalServer(options: TemporalServerOptions): TemporalServer {
  const { namespace, clock, pause, onLost } = options;
  const connection = Connection.lazy({
    ...connectionOptions(options),
    channelArgs: { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': RECONNECT_MS_MAX },
    // The default interceptor repeats calls for 20 seconds.
    interceptors: [],
  });
  const client = new Client({ connection, namespace });
  const ending = new AbortController();
  let reachabilityNow: Reachability = { reachable: false, since: clock.now() };

  function setReachable(reachable: boolean, cause?: unknown): void {
    if (reachabilityNow.reachable === reachable) return;
    reachabilityNow = { reachable, since: clock.now() };
    if (!reachable) onLost(cause);
  }

  async function call<Answer>(make: () => Promise<Answer>): Promise<Answer> {
    return connection.withDeadline(Date.now() + CALL_MS_MAX, make);
  }

  let current: { readonly id: string; readonly replacing: AbortController } | null = null;

  async function identify(): Promise<ServerInstance> {
    const { namespaceInfo } = await call(() => connection.workflowService.describeNamespace({ namespace }));
    const id = namespaceInfo?.id ?? '';
    if (current?.id !== id) {
      current?.replacing.abort();
      current = { id, replacing: new AbortController() };
    }
    return { id, replaced: current.replacing.signal };
  }

  async function watch(): Promise<void> {
    let first = true;
    while (!ending.signal.aborted) {
      try {
        await identify();
        setReachable(true);
      } catch (error) {
        if (ending.signal.aborted) return;
        if (first) onLost(error);
        setReachable(false, error);
      }
      first = false;
      await pause(reachabilityNow.reachable ? PROBE_MS : PROBE_AGAIN_MS, ending.signal);
    }
  }

  const watching = watch();
  return {
    client,
    reachability: () => reachabilityNow,
    call,
    identify,
    close: async () => {
      ending.abort();
      await connection.close();
      await watching;
    },
  };
}
