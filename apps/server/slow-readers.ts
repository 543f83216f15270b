/**
 * Cuts the connections of clients that read an answer too slowly: each keeps memory, files and perhaps a process for as
 * long as it reads.
 *
 * Invariants: only time in which bytes wait in the connection counts, so no answer is cut because it is made slowly;
 * a request costs nothing, since all connections are looked at together every few seconds. What counts is what the
 * system has taken of the connection's bytes, which may be some megabytes ahead of the client.
 */
import type { Server, Socket } from 'node:net';
import { KIB } from '../../core/kernel/byte-units.ts';

/** A client that reads an answer more slowly than this, for this long, is disconnected. */
export const READER_BYTES_PER_SECOND_MIN = 16 * KIB;
export const READER_SPAN_MS = 60_000;

const LOOK_INTERVAL_MS = 5_000;
const LOOKS = READER_SPAN_MS / LOOK_INTERVAL_MS;
/** What a reader takes at least in a span. Internal: it follows from the two limits that it multiplies. */
const SPAN_BYTES_MIN = (READER_SPAN_MS / 1_000) * READER_BYTES_PER_SECOND_MIN;

/** A connection, as far as its speed matters. */
export interface ReadConnection {
  /** Bytes that the system has taken since the connection was opened. */
  takenBytes(): number;
  /** Whether bytes wait that the system does not take. */
  isWaiting(): boolean;
  cut(): void;
}

export interface SlowReaders {
  add(connection: ReadConnection): void;
  delete(connection: ReadConnection): void;
  /** Cuts whoever was too slow at each look for the whole span. */
  look(): void;
}

export function createSlowReaders(onCut: () => void): SlowReaders {
  // What was taken at the last looks at which bytes waited, the oldest first.
  const connections = new Map<ReadConnection, number[]>();
  return {
    add: (connection) => void connections.set(connection, []),
    delete: (connection) => void connections.delete(connection),
    look() {
      for (const [connection, looks] of connections) {
        if (!connection.isWaiting()) {
          looks.length = 0;
          continue;
        }
        const taken = connection.takenBytes();
        const before = looks.length < LOOKS ? undefined : looks.shift();
        looks.push(taken);
        if (before === undefined || taken - before >= SPAN_BYTES_MIN) continue;
        connections.delete(connection);
        onCut();
        connection.cut();
      }
    },
  };
}

/** Watches all connections of a server from now on, until it is closed. */
export function cutSlowReaders(server: Server, onCut: () => void): void {
  const readers = createSlowReaders(onCut);
  // For a TLS server too this is the connection below, whose queue is that of the encrypted bytes.
  server.on('connection', (socket: Socket) => {
    const connection: ReadConnection = {
      takenBytes: () => socket.bytesWritten - queuedBytes(socket),
      isWaiting: () => queuedBytes(socket) > 0,
      // What waits is dropped immediately; else the system would go on offering it.
      cut: () => socket.resetAndDestroy(),
    };
    readers.add(connection);
    socket.once('close', () => readers.delete(connection));
  });
  const timer = setInterval(() => readers.look(), LOOK_INTERVAL_MS);
  timer.unref();
  server.once('close', () => clearInterval(timer));
}

/**
 * Bytes that the system has not taken yet. `writableLength` counts a write until all of it was taken, which at the
 * slowest speed takes a minute for a megabyte; Node's own timeout of a socket reads this figure too.
 */
export function queuedBytes(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null) return 0;
  const size: unknown = Reflect.get(handle, 'writeQueueSize');
  return typeof size === 'number' ? size : socket.writableLength;
}
