/** A line to a server that a test can cut, stall or eavesdrop on. */
import { once } from 'node:events';
import { createConnection, createServer, type NetConnectOpts, type Socket } from 'node:net';

export interface Link {
  /** Ends both sides at once, as a network that fails. */
  cut(): void;
  /** Passes data on to the server, for a test that held it back. */
  send(data: Buffer): void;
}

export interface TcpProxy {
  /** Where it listens, on 127.0.0.1. */
  readonly port: number;
  /** Asked for each piece of data; what it returns is passed on. */
  onQuery: (data: Buffer, link: Link) => Buffer | null;
  onAnswer: (data: Buffer, link: Link) => Buffer | null;
  /** New lines can be opened at once. */
  cutAll(): void;
  /** Cuts all, and refuses new ones. */
  close(): Promise<void>;
}

export async function startTcpProxy(target: NetConnectOpts): Promise<TcpProxy> {
  const links = new Set<Link>();
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
    forward(client, upstream, link, (data) => proxy.onQuery(data, link));
    forward(upstream, client, link, (data) => proxy.onAnswer(data, link));
  });
  server.listen(0, '127.0.0.1');
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
  // Either side's end or failure is the other side's as well.
  from.on('error', link.cut);
  from.on('close', link.cut);
}
