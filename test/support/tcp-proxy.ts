/** A TCP proxy to a server whose connections a test can cut, stall or read. */
import { once } from 'node:events';
import { createConnection, createServer, type NetConnectOpts, type Socket } from 'node:net';

export interface Link {
  /** Ends both sides together, as when the network fails. */
  cut(): void;
  /** Sends data to the server that the test held back before. */
  send(data: Buffer): void;
}

export interface TcpProxy {
  /** The port on which the proxy listens, on 127.0.0.1. */
  readonly port: number;
  /** Called with each chunk from the client; the proxy forwards what it returns, and nothing for null. */
  onQuery: (data: Buffer, link: Link) => Buffer | null;
  onAnswer: (data: Buffer, link: Link) => Buffer | null;
  /** Cuts all connections; clients can connect again immediately. */
  cutAll(): void;
  /**
   * Passes nothing on, either way, on the connections that are open now; the returned function goes on where it was.
   */
  freeze(): () => void;
  /** Cuts all connections and refuses new ones. */
  close(): Promise<void>;
}

/** Listens at any free port unless one is named. */
export async function startTcpProxy(target: NetConnectOpts, port = 0): Promise<TcpProxy> {
  const links = new Set<Link>();
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = createConnection(target);
    const link: Link = {
      cut: () => {
        client.destroy();
        upstream.destroy();
        links.delete(link);
      },
      send: (data) => upstream.write(data),
    };
    links.add(link);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
    forward(client, upstream, link, (data) => proxy.onQuery(data, link));
    forward(upstream, client, link, (data) => proxy.onAnswer(data, link));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The proxy has no port');
  const cutAll = () => {
    for (const link of links) link.cut();
  };
  const proxy: TcpProxy = {
    port: address.port,
    onQuery: (data) => data,
    onAnswer: (data) => data,
    cutAll,
    freeze: () => {
      const frozen = [...sockets];
      for (const socket of frozen) socket.pause();
      return () => {
        for (const socket of frozen) socket.resume();
      };
    },
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      cutAll();
      await closed;
    },
  };
  return proxy;
}

function forward(from: Socket, to: Socket, link: Link, change: (data: Buffer) => Buffer | null): void {
  from.on('data', (data) => {
    const passed = change(data);
    if (passed !== null && !to.destroyed) to.write(passed);
  });
  // When one side ends or fails, both sides are closed.
  from.on('error', link.cut);
  from.on('close', link.cut);
}
