/**
 * The connections of a node: how many requests of one are worked on, and which wait.
 *
 * Invariants: a connection has one request under way; those that it sends before the answer wait, in their order, and
 * from a few on nothing more is read of it. A request that waits has cost its parsing and nothing else.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ConnectionRoom, createConnectionRoom, type RoomOptions } from './connection-room.ts';

/**
 * Requests of one connection that wait until those before them are answered. One chunk may bring more: such a
 * connection ends.
 */
export const PIPELINED_REQUESTS_MAX = 100;
/** From this many waiting requests on, the node reads no more of a connection. Internal: the rest is read later. */
export const PIPELINED_REQUESTS_READ_MAX = 8;
/**
 * Waiting requests of all connections of a node. A connection that brings too many while there are more ends without an
 * answer to them.
 */
export const PIPELINED_REQUESTS_OF_NODE_MAX = 10_000;

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface ConnectionsOptions extends RoomOptions {
  /** Answers a request when its turn has come. */
  readonly serve: RequestListener;
  readonly newRequestId: () => string;
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
  const room = createConnectionRoom(options);
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
function watch(room: ConnectionRoom, server: Server, tls: boolean): void {
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
