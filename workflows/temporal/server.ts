/**
 * The line to Temporal's server, and what is known of it: whether it answers now, and since when.
 *
 * Must stay true: no call waits for longer than its bound, and none is repeated by itself; whoever makes one decides. A
 * server that came back is reached again within seconds.
 */
import { Client, Connection } from '@temporalio/client';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { type Line, lineOptions } from './connection-options.ts';
import { pause } from './pause.ts';

export interface Reachability {
  /** Whether the namespace answered when it was last asked; false before the first answer. */
  readonly reachable: boolean;
  /** Since when that is so. */
  readonly since: Timestamp;
}

/** A server, told by its namespace's id from one that lost its data. */
export interface StandingServer {
  readonly id: string;
  /** Aborted when another answers in its place. */
  readonly replaced: AbortSignal;
}

export interface TemporalServerOptions extends Line {
  readonly namespace: string;
  readonly clock: Pick<Clock, 'now'>;
  /** Each time that the server no longer answers, and why. */
  readonly onLost: (cause: unknown) => void;
}

export interface TemporalServer {
  readonly client: Client;
  reachability(): Reachability;
  /** One call, with a bound on its time: rejects when it did not answer by then. */
  call<Answer>(make: () => Promise<Answer>): Promise<Answer>;
  /** Asks which server it is. */
  standing(): Promise<StandingServer>;
  close(): Promise<void>;
}

const CALL_SPAN_MS = 3_000;
/** How often it is asked whether it is there: while it is, and while it is not. */
const LOOK_MS = 5_000;
const LOOK_AGAIN_MS = 1_000;
/** gRPC would wait for up to two minutes before it tries a line that broke again. */
const RECONNECT_MS_MAX = 2_000;

export function openTemporalServer(options: TemporalServerOptions): TemporalServer {
  const { namespace, clock, onLost } = options;
  const connection = Connection.lazy({
    ...lineOptions(options),
    channelArgs: { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': RECONNECT_MS_MAX },
    // The default repeats calls for 20 seconds.
    interceptors: [],
  });
  const client = new Client({ connection, namespace });
  const ending = new AbortController();
  let known: Reachability = { reachable: false, since: clock.now() };

  function learn(reachable: boolean, cause?: unknown): void {
    if (known.reachable === reachable) return;
    known = { reachable, since: clock.now() };
    if (!reachable) onLost(cause);
  }

  async function call<Answer>(make: () => Promise<Answer>): Promise<Answer> {
    return connection.withDeadline(Date.now() + CALL_SPAN_MS, make);
  }

  let standing: { readonly id: string; readonly replacing: AbortController } | null = null;

  async function describe(): Promise<StandingServer> {
    const { namespaceInfo } = await call(() => connection.workflowService.describeNamespace({ namespace }));
    const id = namespaceInfo?.id ?? '';
    if (standing?.id !== id) {
      standing?.replacing.abort();
      standing = { id, replacing: new AbortController() };
    }
    return { id, replaced: standing.replacing.signal };
  }

  async function watch(): Promise<void> {
    let first = true;
    while (!ending.signal.aborted) {
      try {
        await describe();
        learn(true);
      } catch (error) {
        if (ending.signal.aborted) return;
        if (first) onLost(error);
        learn(false, error);
      }
      first = false;
      await pause(known.reachable ? LOOK_MS : LOOK_AGAIN_MS, ending.signal);
    }
  }

  const watching = watch();
  return {
    client,
    reachability: () => known,
    call,
    standing: describe,
    close: async () => {
      ending.abort();
      await connection.close();
      await watching;
    },
  };
}
