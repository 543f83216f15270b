/**
 * A plain HTTP proxy before several servers, like the load balancer of a service: it sends each request to the next
 * server in rotation, and skips servers that refuse connections.
 *
 * Invariants: the proxy never resends a request of which a byte may have reached a server; when that server dies,
 * the client's connection breaks. The proxy does not interpret the requests.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { cleanUp, type Ending } from './cleanup.ts';

export interface RoundRobin {
  readonly url: string;
  /** The number of requests sent to each server, in the order of `servers`. */
  readonly requests: readonly number[];
  /** The paths of git's requests that carried credentials and were answered 401. */
  readonly denied: readonly string[];
}

/** Starts a proxy that is closed after the test. The servers are addresses such as `http://localhost:1234`. */
export async function startRoundRobin(context: Ending, servers: readonly string[]): Promise<RoundRobin> {
  const requests = servers.map(() => 0);
  const denied: string[] = [];
  let turn = 0;
  const proxy = createServer((request, response) => {
    turn += 1;
    passOn(request, response, turn, servers.length);
  });

  function passOn(request: IncomingMessage, response: ServerResponse, first: number, tries: number): void {
    const index = first % servers.length;
    const { hostname, port } = new URL(servers[index] ?? '');
    const { method, url, headers } = request;
    // Every request uses a new connection: a kept-alive one may have died unnoticed after taking the request.
    const outgoing = send({ ...{ hostname, port, method, path: url, headers }, agent: false });
    let connected = false;
    outgoing.once('socket', (socket) =>
      socket.once('connect', () => {
        connected = true;
        requests[index] = (requests[index] ?? 0) + 1;
        request.pipe(outgoing);
      }),
    );
    outgoing.once('response', (incoming) => {
      const isGit = url?.startsWith('/r/') === true;
      if (isGit && incoming.statusCode === 401 && headers.authorization !== undefined) denied.push(url);
      response.writeHead(incoming.statusCode ?? 502, incoming.rawHeaders);
      incoming.on('error', () => response.destroy());
      incoming.pipe(response);
    });
    outgoing.once('error', () => {
      if (connected) response.destroy();
      else if (tries > 1) passOn(request, response, first + 1, tries - 1);
      else response.writeHead(503, { 'Retry-After': '1' }).end('No server takes connections\n');
    });
    response.once('close', () => outgoing.destroy());
  }

  proxy.requestTimeout = 0;
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new TypeError('The proxy has no port');
  cleanUp(context, async () => {
    proxy.close();
    proxy.closeAllConnections();
    await once(proxy, 'close');
  });
  return { url: `http://127.0.0.1:${address.port}`, requests, denied };
}
