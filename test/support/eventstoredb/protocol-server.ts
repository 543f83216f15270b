/**
 * The protocol server: it stands in for EventStoreDB in tests. It is a gRPC server that speaks the protocol of
 * EventStoreDB's own client, by that client's generated descriptors, over a log in memory.
 *
 * It proves nothing about EventStoreDB itself: it has no disk, no replication, no scavenging and no projections. It
 * proves how the adapter handles the protocol and the faults in faults.ts. The contract suite runs with the same
 * assertions on a real server where STRATA_EVENTSTORE_URL names one.
 *
 * Invariants: it listens on the loopback address only; its log outlives `restart`, as a server's disk does.
 */
import { randomUUID } from 'node:crypto';
import { GossipService } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import { ServerFeaturesService } from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import * as grpc from '@grpc/grpc-js';
import { type AppendContext, batchAppend, tombstone, unaryAppend } from './appending.ts';
import { type Faults, noFaults } from './faults.ts';
import { streamNameOf } from './messages.ts';
import { readEvents } from './reading.ts';
import { createRecordedLog, type RecordedLog } from './recorded-log.ts';

const EMPTY = new Uint8Array();
const LEADER = 8;

export interface ProtocolServerOptions {
  /** 0, the default, chooses a free port. */
  readonly port?: number;
  /** Whether the server offers BatchAppend, as it does by default; without it the client uses Append. */
  readonly batches?: boolean;
  /** In PEM form. Without it the server takes connections without TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** When present, the server refuses reads and appends without these credentials. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** The version that the server reports. */
  readonly version?: string;
}

export interface ProtocolServer {
  readonly port: number;
  /** The value for STRATA_EVENTSTORE_URL. */
  readonly url: string;
  readonly log: RecordedLog;
  readonly faults: Faults;
  readonly counts: Record<'appends' | 'streamReads' | 'allReads' | 'subscriptions' | 'features', number>;
  /** Appends one of the server's own events, as EventStoreDB does from time to time. */
  appendSystemEvent(): void;
  /** How many BatchAppend calls are open. */
  openBatches(): number;
  /** The number of open subscriptions. */
  openSubscriptions(): number;
  /** Ends all connections together, then listens on the same port again with the same log. */
  restart(): Promise<void>;
  /** Ends all connections and frees the port. */
  stop(): Promise<void>;
  /** After `stop`: listens on the same port again. */
  start(): Promise<void>;
}

export async function startProtocolServer(options: ProtocolServerOptions = {}): Promise<ProtocolServer> {
  const log = createRecordedLog();
  const faults = noFaults();
  const counts = { appends: 0, streamReads: 0, allReads: 0, subscriptions: 0, features: 0 };
  const scheme = options.tls === undefined ? '?tls=false' : '';
  const batches: AppendContext['batches'] = new Set();
  const subscribed: AppendContext['subscribed'] = new Set();
  let port = options.port ?? 0;
  let running: grpc.Server | null = null;

  const appendSystemEvent = (): void => {
    const event = { id: randomUUID(), type: '$statsCollected', contentType: 'application/json' };
    log.append('$stats-127.0.0.1', 'any', [{ ...event, data: Buffer.from('{}'), metadata: EMPTY }]);
  };

  async function start(): Promise<void> {
    const server = new grpc.Server({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 });
    batches.clear();
    const context: AppendContext = { log, faults, counts, batches, subscribed, restart: () => void restart() };
    addServices(
      server,
      context,
      options,
      () => port,
      () => {
        counts.features += 1;
      },
    );
    const { tls } = options;
    const credentials =
      tls === undefined
        ? grpc.ServerCredentials.createInsecure()
        : grpc.ServerCredentials.createSsl(null, [
            { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) },
          ]);
    port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    running = server;
  }

  async function stop(): Promise<void> {
    const server = running;
    running = null;
    if (server === null) return;
    server.forceShutdown();
    await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  }

  async function restart(): Promise<void> {
    await stop();
    await start();
  }

  await start();
  // A real log begins with system events, so position 0 never belongs to a client's event.
  appendSystemEvent();
  appendSystemEvent();
  return {
    get port() {
      return port;
    },
    get url() {
      return `esdb://127.0.0.1:${port}${scheme}`;
    },
    openBatches: () => batches.size,
    openSubscriptions: () => subscribed.size,
    ...{ log, faults, counts, appendSystemEvent, restart, stop, start },
  };
}

type Fail = (error: { code: grpc.status; details: string; metadata?: grpc.Metadata }) => void;

function addServices(
  server: grpc.Server,
  context: AppendContext,
  options: ProtocolServerOptions,
  port: () => number,
  countFeatures: () => void,
): void {
  const { log, faults } = context;
  /** Returns false when the server has refused the call, or will never answer it. */
  const admit = (metadata: grpc.Metadata, fail: Fail): boolean => {
    if (faults.stalled) return false;
    const refusal = refusalOf(metadata, faults, options);
    if (refusal !== null) fail(refusal);
    return refusal === null;
  };
  server.addService(StreamsService, {
    read: (call: grpc.ServerWritableStream<streams.ReadReq, streams.ReadResp>) => {
      if (!admit(call.metadata, (error) => call.emit('error', error))) return;
      readEvents(context, call).catch((error: unknown) => call.emit('error', error));
    },
    append: (
      call: grpc.ServerReadableStream<streams.AppendReq, streams.AppendResp>,
      answer: grpc.sendUnaryData<streams.AppendResp>,
    ) => {
      if (admit(call.metadata, answer)) unaryAppend(context, call, answer);
      else call.resume();
    },
    batchAppend: (call: grpc.ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>) => {
      if (admit(call.metadata, (error) => call.emit('error', error))) batchAppend(context, call);
      else call.resume();
    },
    delete: (
      call: grpc.ServerUnaryCall<streams.DeleteReq, streams.DeleteResp>,
      answer: grpc.sendUnaryData<streams.DeleteResp>,
    ) => {
      log.delete(streamNameOf(call.request.getOptions()?.getStreamIdentifier()));
      answer(null, new streams.DeleteResp().setNoPosition(new shared.Empty()));
    },
    tombstone: (
      call: grpc.ServerUnaryCall<streams.TombstoneReq, streams.TombstoneResp>,
      answer: grpc.sendUnaryData<streams.TombstoneResp>,
    ) => {
      if (admit(call.metadata, answer)) tombstone(context, call.request, answer);
    },
  });
  server.addService(ServerFeaturesService, {
    getSupportedMethods: (
      _call: grpc.ServerUnaryCall<shared.Empty, features.SupportedMethods>,
      answer: grpc.sendUnaryData<features.SupportedMethods>,
    ) => {
      countFeatures();
      if (faults.stalled) return;
      const code = faults.features?.() ?? null;
      if (code !== null) return answer({ code, details: 'No features today' });
      const method = new features.SupportedMethod()
        .setServiceName('event_store.client.streams.streams')
        .setMethodName('batchappend');
      const methods = options.batches === false ? [] : [method];
      const version = options.version ?? '24.10.0';
      answer(null, new features.SupportedMethods().setMethodsList(methods).setEventStoreServerVersion(version));
    },
  });
  server.addService(GossipService, {
    read: (
      _call: grpc.ServerUnaryCall<shared.Empty, gossip.ClusterInfo>,
      answer: grpc.sendUnaryData<gossip.ClusterInfo>,
    ) => {
      if (faults.stalled) return;
      const endPoint = new gossip.EndPoint().setAddress('127.0.0.1').setPort(faults.leaderPort ?? port());
      const leader = new gossip.MemberInfo()
        .setInstanceId(new shared.UUID().setString(randomUUID()))
        .setTimeStamp('0')
        .setState(LEADER)
        .setIsAlive(true)
        .setHttpEndPoint(endPoint);
      answer(null, new gossip.ClusterInfo().setMembersList([leader]));
    },
  });
}

const UNAUTHENTICATED = { code: grpc.status.UNAUTHENTICATED, details: 'Unauthenticated' };

function accessDenied(): Parameters<Fail>[0] {
  const metadata = new grpc.Metadata();
  metadata.set('exception', 'access-denied');
  return { code: grpc.status.PERMISSION_DENIED, details: 'Access Denied', metadata };
}

function refusalOf(
  metadata: grpc.Metadata,
  faults: Faults,
  { credentials }: ProtocolServerOptions,
): Parameters<Fail>[0] | null {
  if (faults.refuses === 'credentials') return UNAUTHENTICATED;
  if (faults.refuses === 'right') return accessDenied();
  if (credentials !== undefined) {
    const wanted = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
    if (metadata.get('authorization')[0] !== wanted) return UNAUTHENTICATED;
  }
  if (faults.leaderPort === null || metadata.get('requires-leader')[0] !== 'true') return null;
  const trailers = new grpc.Metadata();
  trailers.set('exception', 'not-leader');
  trailers.set('leader-endpoint-host', '127.0.0.1');
  trailers.set('leader-endpoint-port', String(faults.leaderPort));
  return { code: grpc.status.NOT_FOUND, details: 'Leader info available', metadata: trailers };
}
