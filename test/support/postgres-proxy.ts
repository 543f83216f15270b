/** A proxy to PostgreSQL whose connections a test can cut, stall or read. */
import type { NetConnectOpts } from 'node:net';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

export interface PostgresProxy extends TcpProxy {
  /** Connects to the same database as the same user, through this proxy. */
  readonly connectionString: string;
}

/** Listens at any free port unless one is named. */
export async function startPostgresProxy(connectionString: string, port = 0): Promise<PostgresProxy> {
  const url = new URL(connectionString);
  const proxy = await startTcpProxy(targetOf(url), port);
  url.host = `127.0.0.1:${proxy.port}`;
  url.search = '';
  return Object.assign(proxy, { connectionString: url.href });
}

function targetOf(url: URL): NetConnectOpts {
  const directory = url.searchParams.get('host');
  if (directory !== null) return { path: `${directory}/.s.PGSQL.${url.port}` };
  return { host: url.hostname, port: Number(url.port) };
}
