/**
 * The connections of a node: how many there are, of one network too, and how many requests of one are worked on.
 *
 * Must stay true: a connection has one request under way; those that it sends before the answer wait, in their order, and
 * from a few on nothing more is read of it. A request that waits has cost its parsing and nothing else. Nobody's request is
 * ended to make room: a connection gives way while it is idle, the one that was idle for longest first.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  CONNECTIONS_MAX,
  CONNECTIONS_OF_NETWORK_MAX,
  PIPELINED_REQUESTS_MAX,
  PIPELINED_REQUESTS_OF_NODE_MAX,
  PIPELINED_REQUESTS_READ_MAX,
} from '../../core/kernel/limits.ts';
import { networkOf } from '../../core/kernel/network.ts';
import { plainAddress } from './source-address.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface ConnectionsOptions {
  /** Answers a request when its turn has come. */
  readonly serve: RequestListener;
  /** Whether the bound of a network does not hold for the address: the machine's own, and trusted proxies. */
  readonly isExempt: (address: string) => boolean;
  readonly newRequestId: () => string;
  readonly connectionsMax?: number;
  readonly connectionsOfNetworkMax?: number;
}

export interface Connections {
  /** Takes every request that the server has read. */
  readonly take: RequestListener;
  /** Bounds the connections of the server. `tls` says that its requests come from the sockets of handshakes. */
  watch(server: Server, tls: boolean): void;
  /** The last request that was read of the connection; null if none was. */
  latest(socket: Socket): Exchange | null;
}

interface Connection {
  latest: Exchange | null;
  underWay: boolean;
  readonly waiting: Exchange[];
  /** The first request that was read beyond those that may wait; null: none was. */
  refused: ServerResponse | null;
  /** How many there were of them. Only the first is answered. */
  surplus: number;
  /** Whether it will soon be seen to that no more is read. */
  holdingBack: boolean;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { serve, newRequestId } = options;
  const room = createRoom(options);
  const known = new WeakMap<Socket, Connection>();
  let waitingOfNode = 0;

  const connectionOf = (socket: Socket): Connection => {
    const connection = known.get(socket);
    if (connection !== undefined) return connection;
    const made = newConnection();
    known.set(socket, made);
    socket.once('close', () => {
      waitingOfNode -= made.waiting.length + made.surplus;
      made.waiting.length = 0;
      made.surplus = 0;
    });
    return made;
  };
  const run = (socket: Socket, connection: Connection, { request, response }: Exchange): void => {
    connection.underWay = true;
    response.once('close', () => goOn(socket, connection));
    serve(request, response);
  };
  const goOn = (socket: Socket, connection: Connection): void => {
    connection.underWay = false;
    // The socket's end has dropped what waited.
    if (socket.destroyed || !socket.writable) return;
    const next = connection.waiting.shift();
    if (next === undefined) {
      if (connection.refused === null) room.idle(socket);
      else refuseRest(connection.refused, newRequestId());
      return;
    }
    waitingOfNode -= 1;
    if (isReadOn(connection)) socket.resume();
    else holdBack(socket, connection);
    run(socket, connection, next);
  };
  const wait = (socket: Socket, connection: Connection, exchange: Exchange): void => {
    if (connection.waiting.length < PIPELINED_REQUESTS_MAX) connection.waiting.push(exchange);
    else {
      connection.refused ??= exchange.response;
      connection.surplus += 1;
    }
    waitingOfNode += 1;
    if (waitingOfNode > PIPELINED_REQUESTS_OF_NODE_MAX) socket.destroy();
    else if (!isReadOn(connection)) holdBack(socket, connection);
  };
  return {
    latest: (socket) => known.get(socket)?.latest ?? null,
    take(request, response) {
      const { socket } = request;
      // The connection was refused, or ends with an answer that was sent.
      if (!socket.writable) return;
      const connection = connectionOf(socket);
      const exchange = { request, response };
      connection.latest = exchange;
      if (connection.underWay) {
        wait(socket, connection, exchange);
        return;
      }
      room.busy(socket);
      run(socket, connection, exchange);
    },
    watch: (server, tls) => watch(room, server, tls),
  };
}

function newConnection(): Connection {
  return { latest: null, underWay: false, waiting: [], refused: null, surplus: 0, holdingBack: false };
}

/** A connection of TLS is one of the machine first, and takes requests after its handshake. */
function watch(room: Room, server: Server, tls: boolean): void {
  server.on('connection', (socket: Socket) => room.enter(socket, tls));
  if (!tls) return;
  server.on('secureConnection', (socket: Socket) => {
    room.idle(socket);
    socket.once('close', () => room.busy(socket));
  });
}

function isReadOn({ waiting, refused }: Connection): boolean {
  return waiting.length < PIPELINED_REQUESTS_READ_MAX && refused === null;
}

/** Stops the reading of the socket. Node begins it again after each message, at the next tick, so this comes later. */
function holdBack(socket: Socket, connection: Connection): void {
  if (connection.holdingBack) return;
  connection.holdingBack = true;
  process.nextTick(() =>
    process.nextTick(() => {
      connection.holdingBack = false;
      if (!isReadOn(connection)) socket.pause();
    }),
  );
}

/** Answers the request after the last that may wait, and ends the connection: those behind it are not answered. */
function refuseRest(response: ServerResponse, requestId: string): void {
  const detail = `At most ${PIPELINED_REQUESTS_MAX} requests may wait for answers on a connection: send the rest again`;
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Retry-After': '1', Connection: 'close' };
  response.writeHead(429, { ...headers, 'X-Request-Id': requestId }).end(JSON.stringify({ detail }));
}

interface Room {
  /** Counts a new connection, or ends it if there is no room. `handshaking`: it becomes idle later. */
  enter(socket: Socket, handshaking: boolean): void;
  busy(socket: Socket): void;
  idle(socket: Socket): void;
}

interface Network {
  connections: number;
  readonly idle: Set<Socket>;
}

function createRoom({
  isExempt,
  connectionsMax = CONNECTIONS_MAX,
  connectionsOfNetworkMax = CONNECTIONS_OF_NETWORK_MAX,
}: ConnectionsOptions): Room {
  /** Those that have been idle for longest are first. */
  const idle = new Set<Socket>();
  const networks = new Map<string, Network>();
  const networkOfSocket = new WeakMap<Socket, Network>();
  let connections = 0;

  const networkAt = (name: string): Network => {
    const network = networks.get(name) ?? { connections: 0, idle: new Set() };
    networks.set(name, network);
    return network;
  };
  const forget = (socket: Socket): void => {
    idle.delete(socket);
    networkOfSocket.get(socket)?.idle.delete(socket);
  };
  /** Ends the connection that was idle for longest. Returns false if none is idle. */
  const giveWay = (among: Set<Socket>): boolean => {
    const [oldest] = among;
    if (oldest === undefined) return false;
    forget(oldest);
    oldest.destroy();
    return true;
  };
  const becomeIdle = (socket: Socket): void => {
    const network = networkOfSocket.get(socket) ?? networkAt(networkOf(plainAddress(socket.remoteAddress ?? '')));
    networkOfSocket.set(socket, network);
    idle.add(socket);
    network.idle.add(socket);
  };
  return {
    busy: forget,
    idle: becomeIdle,
    enter(socket, handshaking) {
      const address = plainAddress(socket.remoteAddress ?? '');
      const name = networkOf(address);
      const network = networkAt(name);
      const crowded = network.connections >= connectionsOfNetworkMax && !isExempt(address);
      const full = connections >= connectionsMax;
      const hasRoom = (!crowded || giveWay(network.idle)) && (!full || crowded || giveWay(idle));
      if (!hasRoom) {
        if (network.connections === 0) networks.delete(name);
        if (handshaking) socket.destroy();
        else refuseConnection(socket);
        return;
      }
      connections += 1;
      network.connections += 1;
      networkOfSocket.set(socket, network);
      if (!handshaking) becomeIdle(socket);
      socket.once('close', () => {
        connections -= 1;
        network.connections -= 1;
        forget(socket);
        if (network.connections === 0) networks.delete(name);
      });
    },
  };
}

function refuseConnection(socket: Socket): void {
  const body = JSON.stringify({ detail: 'Too many connections are open: close some, and try again' });
  const head = [
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Retry-After: 5',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
