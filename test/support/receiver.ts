/** An HTTPS receiver on the loopback interface that treats each connection as a test decides. */
import { once } from 'node:events';
import { type AddressInfo, createServer as createPlainServer, type Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';
import { cleanUp, type Ending } from './cleanup.ts';

export interface Receiver {
  readonly port: number;
  /** The server names (SNI) of the handshakes; null for those without one. */
  readonly serverNames: readonly (string | null)[];
  /** Each request as received: head and body. */
  readonly requests: readonly string[];
}

/** Called once for each connection, when the request's head and body have arrived. */
export type Behaviour = (socket: TLSSocket) => void;

/** Answers with these bytes and closes. */
export function answering(text: string): Behaviour {
  return (socket) => socket.end(text);
}

/** Writes without pause until the other side has closed. */
export function flooding(first: string, more: () => string): Behaviour {
  return (socket) => {
    socket.write(first);
    const flood = (): void => {
      while (!socket.destroyed && socket.write(more())) continue;
    };
    socket.on('drain', flood);
    flood();
  };
}

/** Writes a little at intervals until the other side has closed. */
export function dripping(first: string, drop: string, intervalMs = 10): Behaviour {
  return (socket) => {
    socket.write(first);
    const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write(drop)), intervalMs);
    socket.on('close', () => clearInterval(timer));
  };
}

export async function startReceiver(
  context: Ending,
  certificate: Certificate,
  behaviour: Behaviour = answering('HTTP/1.1 204 No Content\r\n\r\n'),
): Promise<Receiver> {
  const serverNames: (string | null)[] = [];
  const requests: string[] = [];
  const open = new Set<TLSSocket>();
  const server = createServer(certificate, (socket) => {
    open.add(socket);
    const { servername } = socket as { readonly servername?: unknown };
    serverNames.push(typeof servername === 'string' ? servername : null);
    let received = '';
    let handled = false;
    // The client often resets the connection after a hostile answer.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (handled || !isWhole(received)) return;
      handled = true;
      requests.push(received);
      behaviour(socket);
    });
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of open) socket.destroy();
    await closed;
  });
  return { port: (server.address() as AddressInfo).port, serverNames, requests };
}

function isWhole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n');
  const [, length = '0'] = /\r\ncontent-length: *(\d+)/i.exec(received) ?? [];
  return end !== -1 && received.length >= end + 4 + Number(length);
}

/** A server without TLS. */
export async function plainServer(
  context: Ending,
  onConnection: (socket: Socket) => void,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createPlainServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  cleanUp(context, close);
  return { port, close };
}
