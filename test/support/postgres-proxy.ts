/** A line to PostgreSQL that a test can cut, stall or eavesdrop on. */
import { once } from 'node:events';
import { createServer, createConnection, type NetConnectOpts, type Socket } from 'node:net';

export interface Link {
  /** Ends both sides at once, as a network that fails. */
  cut(): void;
  /** Passes data on to the server, for a test that held it back. */
  send(data: Buffer): void;
}

export interface PostgresProxy {
  /** The same database and user through this proxy. */
  readonly connectionString: string;
  /** Asked for each piece of data; what it returns is passed on. */
  onQuery: (data: Buffer, link: Link) => Buffer | null;
  onAnswer: (data: Buffer, link: Link) => Buffer | null;
  cutAll(): void;
  close(): Promise<void>;
}

export async function startPostgresProxy(connectionString: string): Promise<PostgresProxy> {
  const url = new URL(connectionString);
  const target = targetOf(url);
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
  url.host = `127.0.0.1:${address.port}`;
  url.search = '';
  const cutAll = () => {
    for (const link of links) link.cut();
  };
  const proxy: PostgresProxy = {
    connectionString: url.href,
    onQuery: (data) => data,
    onAnswer: (data) => data,
    cutAll,
    close: async () => {
      cutAll();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}

function targetOf(url: URL): NetConnectOpts {
  const directory = url.searchParams.get('host');
  if (directory !== null) return { path: `${directory}/.s.PGSQL.${url.port}` };
  return { host: url.hostname, port: Number(url.port) };
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
