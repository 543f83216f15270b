/**
 * EventStoreDB's client, with a way to give it up.
 *
 * Invariants: after `abandon` no answer and no error of this client reaches the rest of the process. The library
 * keeps the pending appends of all clients in one map. An error of any client's stream rejects and removes all of them,
 * and an answer to a removed append throws where nobody can catch it. So `abandon` first removes the listeners of all
 * streams, and a stream that opens later gets none. The library's own `dispose` may never resolve, and leaves the
 * connection open.
 *
 * The same holds within one client: it connects again by itself, and its appends on the old connection may fail after
 * those on the new one were sent. It would also ask again what the server offers, and keep a failure of that as long as
 * it lives. So a client that is in use never connects again: it is given up.
 */
import type { EventEmitter } from 'node:events';
import {
  type ChannelCredentialOptions,
  type DNSClusterOptions,
  EventStoreDBClient,
  type GossipClusterOptions,
  type SingleNodeOptions,
} from '@eventstore/db-client';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { EventStoreDbConnection } from './connection.ts';
import { NoAnswerError } from './failures.ts';

/** The server compares an append's deadline with its own clock: with this one, a clock a day ahead does no harm. */
const DEADLINE_MS = 24 * 60 * 60_000;

/** For an answer to a ping, which gRPC sends every 10 s: it finds a frozen server that nobody asks anything. */
const KEEP_ALIVE_TIMEOUT_MS = 3_000;
/** For a node's answer about its cluster, in whole seconds. With the library's 5 a frozen node holds up the others. */
const GOSSIP_TIMEOUT_S = 1;

/** The state of a closed connection in gRPC's list (connectivity-semantics-and-api). */
const SHUTDOWN = 4;

type StreamCreator = EventStoreDBClient['GRPCStreamCreator'];

export class AbandonableClient extends EventStoreDBClient {
  readonly #streams = new Set<EventEmitter>();
  #abandoned = false;
  #onLost: (() => void) | null = null;

  constructor(connection: EventStoreDbConnection) {
    // At run time the constructor's three overloads are one; TypeScript lets a subclass use only one of them.
    super(addressOf(connection) as SingleNodeOptions, channelOf(connection), connection.credentials ?? undefined);
    const create: StreamCreator = this.GRPCStreamCreator;
    const createWatched: StreamCreator = (...parts) => {
      const open = create(...parts);
      return async () => {
        if (this.#abandoned) throw new NoAnswerError('This client was given up');
        const stream = await open();
        this.#watch(stream);
        return stream;
      };
    };
    this.GRPCStreamCreator = createWatched;
    const handleError = this.handleError;
    this.handleError = async (client, error) => {
      await handleError(client, error);
      // The library closes the connection that it replaces.
      if (client.getChannel().getConnectivityState(false) === SHUTDOWN) this.#onLost?.();
    };
  }

  /** Calls the listener when the client would connect again. Until then it follows a follower's hint to the leader. */
  whenLost(listener: () => void): void {
    this.#onLost = listener;
  }

  /** Whether the server takes appends in batches (21.10 and newer). */
  canBatch(): Promise<boolean> {
    return this.supports(StreamsService.batchAppend);
  }

  /** Ends every stream and the connection without waiting for the server. Idempotent. */
  abandon(): void {
    if (this.#abandoned) return;
    this.#abandoned = true;
    for (const stream of this.#streams) isolate(stream);
    this.getChannel().then(
      (channel) => channel.close(),
      // The client never connected, so there is nothing to close.
      () => undefined,
    );
  }

  #watch(stream: EventEmitter): void {
    if (this.#abandoned) {
      isolate(stream);
      throw new NoAnswerError('This client was given up');
    }
    if (this.#streams.has(stream)) return;
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
  }
}

/** Cancels the stream so that nothing it still emits has an effect. */
function isolate(stream: EventEmitter): void {
  stream.removeAllListeners('data');
  stream.removeAllListeners('error');
  // Node throws an error event that has no listener.
  stream.on('error', () => undefined);
  if ('cancel' in stream) (stream as EventEmitter & { cancel(): void }).cancel();
}

type Address = DNSClusterOptions | GossipClusterOptions | SingleNodeOptions;

function addressOf({ hosts, discover, tuning }: EventStoreDbConnection): Address {
  const [first] = hosts;
  const timeouts = { keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, gossipTimeout: GOSSIP_TIMEOUT_S, ...tuning };
  const common = { ...timeouts, throwOnAppendFailure: true, defaultDeadline: DEADLINE_MS, connectionName: 'strata' };
  if (discover) return { ...common, nodePreference: 'leader', discover: first };
  if (hosts.length > 1) return { ...common, nodePreference: 'leader', endpoints: [...hosts] };
  return { ...common, endpoint: first };
}

function channelOf({ tls }: EventStoreDbConnection): ChannelCredentialOptions {
  const { ca, clientCertificate } = tls ?? {};
  return {
    insecure: tls === null,
    ...(ca === undefined ? {} : { rootCertificate: ca }),
    ...(clientCertificate === undefined
      ? {}
      : { userCertFile: clientCertificate.cert, userKeyFile: clientCertificate.key }),
  };
}
