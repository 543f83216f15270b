/**
 * The operators' endpoints: `/healthz`, `/readyz` and `/metrics`.
 *
 * Invariants: what they cost does not grow with the number of requests. The bytes of the metrics are made once for all.
 * A connection that sends a request before the one before it is answered ends, so that a pipeline of them costs
 * nothing: no monitor and no proxy sends one. Who may not read the metrics gets the answer of a path that does not
 * exist.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Role } from './settings.ts';

/** The content of the endpoints. */
export interface Probes {
  readonly roles: readonly Role[];
  metrics(): Promise<{ readonly contentType: string; readonly bytes: Uint8Array }>;
  ready(): Promise<{ readonly ready: boolean; readonly parts: Readonly<Record<string, string>> }>;
  /** Whether the request may read the metrics. */
  mayScrape(request: IncomingMessage): boolean;
}

export type ProbeListener = (target: string, request: IncomingMessage, response: ServerResponse) => void;

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);
const JSON_HEADERS = { 'Content-Type': 'application/json' };

export function isProbe(target: string): boolean {
  return PROBES.has(target);
}

export function createProbeListener(probes: Probes): ProbeListener {
  const answering = new WeakSet<Socket>();
  return (target, request, response) => {
    const { socket } = request;
    if (answering.has(socket)) {
      socket.destroy();
      return;
    }
    answering.add(socket);
    response.once('close', () => answering.delete(socket));
    if (target === '/metrics' && !probes.mayScrape(request)) {
      response.writeHead(404, JSON_HEADERS).end('{"detail":"Not found"}');
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET' }).end();
      return;
    }
    probe(probes, target, response).catch(() => response.destroy());
  };
}

async function probe(probes: Probes, target: string, response: ServerResponse): Promise<void> {
  try {
    if (target === '/metrics') {
      const { contentType, bytes } = await probes.metrics();
      response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': bytes.length }).end(bytes);
      return;
    }
    const state = target === '/healthz' ? { ready: true, parts: {} } : await probes.ready();
    const body = {
      status: state.ready ? 'ok' : 'unavailable',
      ...(target === '/readyz' ? { roles: probes.roles, parts: state.parts } : {}),
    };
    response.writeHead(state.ready ? 200 : 503, JSON_HEADERS).end(JSON.stringify(body));
  } catch {
    response.writeHead(503, JSON_HEADERS).end('{"status":"unavailable"}');
  }
}
