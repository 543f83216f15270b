/**
 * Requests in absolute form (RFC 9112, section 3.2.2), as clients send them that take the service for their proxy, and
 * CONNECT, with which such clients ask for a tunnel.
 *
 * Invariants: the authority of the target counts, and `Host` does not, for whatever reads it. Nothing is forwarded: one
 * that is not the service's own is refused. The path stays as it was sent.
 */
import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';

const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/is;
const DEFAULT_PORTS: Readonly<Record<string, RegExp>> = { http: /:(80)?$/, https: /:(443)?$/ };

/**
 * Makes of a request in absolute form one that names its path alone, with its authority as `Host`. Any other request
 * stays as it is. Returns false if the authority is not one of these.
 */
export function toOriginForm(request: IncomingMessage, own: ReadonlySet<string>): boolean {
  const { url = '' } = request;
  if (url.startsWith('/')) return true;
  const [, scheme, sent, rest] = ABSOLUTE.exec(url) ?? [];
  if (scheme === undefined || sent === undefined || rest === undefined) return true;
  const defaultPort = DEFAULT_PORTS[scheme.toLowerCase()];
  if (defaultPort === undefined) return false;
  const authority = sent.toLowerCase().replace(defaultPort, '');
  if (!own.has(authority)) return false;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = authority;
  return true;
}

const NO_TUNNEL = JSON.stringify({ detail: 'This service is no proxy: it makes no tunnels' });

/**
 * Answers CONNECT with 405 and ends the connection, which Node no longer reads. Behind a request of the connection that
 * is not answered yet there is no room for an answer.
 */
export function refuseTunnels(
  server: Server,
  isAnswering: (socket: Socket) => boolean,
  newRequestId: () => string,
): void {
  server.on('connect', (_request: IncomingMessage, socket) => {
    socket.on('error', () => socket.destroy());
    if (!(socket instanceof Socket) || !socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const head = [
      'HTTP/1.1 405 Method Not Allowed',
      'Allow: GET, HEAD, POST',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(NO_TUNNEL)}`,
      `X-Request-Id: ${newRequestId()}`,
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${NO_TUNNEL}`, () => socket.destroy());
  });
}
