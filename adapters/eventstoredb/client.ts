/**
 * EventStoreDB's client, so that it can be given up.
 *
 * Must stay true: after `abandon` nothing of it reaches the rest of the process. The client keeps the appends it
 * waits for in one map for the whole process: an error of any client's stream rejects and forgets them all, and an
 * answer to a forgotten one throws where nobody can catch it. So a given-up client's streams lose their listeners
 * first, and one that opens a stream late gets none. Its own `dispose` may never end, and leaves the connection open.
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

/** The server compares an append's deadline with its own clock: one that is a day ahead does no harm yet. */
const DEADLINE_MS = 24 * 60 * 60_000;

type StreamCreator = EventStoreDBClient['GRPCStreamCreator'];

export class AbandonableClient extends EventStoreDBClient {
  readonly #streams = new Set<EventEmitter>();
  #abandoned = false;

  constructor(connection: EventStoreDbConnection) {
    // The constructor's three forms are one at run time; TypeScript lets a subclass name only one of them.
    super(placeOf(connection) as SingleNodeOptions, channelOf(connection), connection.credentials ?? undefined);
    const create: StreamCreator = this.GRPCStreamCreator;
    const watched: StreamCreator = (...parts) => {
      const open = create(...parts);
      return async () => {
        if (this.#abandoned) throw new Error('This client was given up');
        const stream = await open();
        this.#watch(stream);
        return stream;
      };
    };
    this.GRPCStreamCreator = watched;
  }

  /** Whether the server takes appends in batches (21.10 and newer). */
  canBatch(): Promise<boolean> {
    return this.supports(StreamsService.batchAppend);
  }

  /** Cuts every stream and the connection, and waits for nothing. */
  abandon(): void {
    if (this.#abandoned) return;
    this.#abandoned = true;
    for (const stream of this.#streams) isolate(stream);
    this.getChannel().then(
      (channel) => channel.close(),
      // There is no connection to close.
      () => undefined,
    );
  }

  #watch(stream: EventEmitter): void {
    if (this.#abandoned) {
      isolate(stream);
      throw new Error('This client was given up');
    }
    if (this.#streams.has(stream)) return;
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
  }
}

function isolate(stream: EventEmitter): void {
  stream.removeAllListeners('data');
  stream.removeAllListeners('error');
  // Without a listener an error event is thrown.
  stream.on('error', () => undefined);
  if ('cancel' in stream) (stream as EventEmitter & { cancel(): void }).cancel();
}

type Place = DNSClusterOptions | GossipClusterOptions | SingleNodeOptions;

function placeOf({ hosts, discover, tuning }: EventStoreDbConnection): Place {
  const [first] = hosts;
  const common = { ...tuning, throwOnAppendFailure: true, defaultDeadline: DEADLINE_MS, connectionName: 'strata' };
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
