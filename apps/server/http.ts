/**
 * The HTTP server: git under /r/ and below the pages of repositories, the REST API under /v1, health and metrics, and
 * the website at every other path.
 *
 * Invariants: no framework handles Git requests. A slow push or clone is bounded by its own idle timer, never by a
 * limit on a whole request. A node without the role for a request never answers 404, which would mean that the
 * repository does not exist. Only HTTP/1.1 and HTTP/1.0 are answered: Node reads a request line without a version too,
 * and then methods that no framework knows. A request gets one answer, also one that turns out unreadable after it was
 * answered.
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { GitHandler } from '../git-http/handler.ts';
import { isForGit } from '../git-http/routes.ts';
import { refuseTunnels, toOriginForm } from './absolute-form.ts';
import { createConnections, type Exchange } from './connections.ts';
import { createProbeListener, isProbe, type Probes } from './probes.ts';
import type { Role } from './settings.ts';
import { withinRequest } from './stray-failures.ts';
import type { TlsPair } from './tls-renewal.ts';

/** How long the handshake of TLS may take. */
export const TLS_HANDSHAKE_SPAN_MS = 30_000;

const HEADERS_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** The bytes of a request's target and headers, less than which it has. */
export const HEADER_BYTES_MAX = 32 * 1024;
/**
 * What limits, counts and holds for a request listens to the end of its response, and so does Fastify: a dozen
 * listeners. Internal: Node only warns beyond it.
 */
const RESPONSE_LISTENERS_MAX = 24;

export interface HttpServerOptions {
  readonly tls: Pick<TlsPair, 'cert' | 'key'> | null;
  /** How long its handshake may take: by default the limit. */
  readonly handshakeSpanMs?: number;
  /** Null without the role `git`. */
  readonly git: GitHandler | null;
  readonly probes: Probes;
  /** Takes requests for /v1, most of /.well-known, and targets that are not paths. Null without the role `api`. */
  readonly rest: RequestListener | null;
  /** Takes every request that is for none of the others. Null without the role `website`. */
  readonly website: RequestListener | null;
  readonly newRequestId: () => string;
  /** What a target in absolute form may name. */
  readonly authorities: ReadonlySet<string>;
  /** Whether the peer's address may open as many connections as there may be: this machine, and trusted proxies. */
  readonly isExempt: (address: string) => boolean;
  /** Answers a request that is not valid HTTP, on the bare socket. */
  readonly onUnreadable: (error: Error, socket: Socket) => void;
}

export function createHttpServer(served: HttpServerOptions): Server {
  const { tls, onUnreadable, authorities } = served;
  const probe = createProbeListener(served.probes);
  const git = served.git ?? misdirected('git', served.newRequestId);
  const rest = served.rest ?? misdirected('api', served.newRequestId);
  const website = served.website ?? misdirected('website', served.newRequestId);
  const otherVersion = refusing(400, 'The request line ends with HTTP/1.1, or HTTP/1.0', served.newRequestId);
  const otherService = refusing(421, 'This service answers for its own addresses only', served.newRequestId);
  const options = {
    requestTimeout: 0,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
  };
  const dispatch: RequestListener = (request, response) => {
    const isOurs = toOriginForm(request, authorities);
    const target = request.url ?? '';
    if (request.httpVersionMajor !== 1) otherVersion(request, response);
    else if (!isOurs) otherService(request, response);
    // Most requests by far, which are told apart without a regular expression.
    else if (target.startsWith('/r/')) git(request, response);
    else if (isProbe(target)) probe(target, request, response);
    else if (isForRest(target)) rest(request, response);
    else if (isForGit(target)) git(request, response);
    else website(request, response);
  };
  const serve: RequestListener = (request, response) => {
    response.setMaxListeners(RESPONSE_LISTENERS_MAX);
    withinRequest(response, () => dispatch(request, response));
  };
  const connections = createConnections({ serve, isExempt: served.isExempt, newRequestId: served.newRequestId });
  const server =
    tls === null
      ? createServer(options, connections.take)
      : createTlsServer({ ...options, ...handshakesOf(tls, served.handshakeSpanMs) }, connections.take);
  connections.watch(server, tls !== null);
  refuseTunnels(server, (socket) => connections.latest(socket)?.response.closed === false, served.newRequestId);
  server.on('clientError', (error: Error, socket: Socket) => {
    const exchange = connections.latest(socket);
    if (exchange === null || !isAnswered(exchange)) onUnreadable(error, socket);
    else if (exchange.response.writableEnded) socket.end();
    else socket.destroy();
  });
  return server;
}

function handshakesOf({ cert, key }: Pick<TlsPair, 'cert' | 'key'>, handshakeTimeout = TLS_HANDSHAKE_SPAN_MS) {
  return { cert, key, handshakeTimeout };
}

/**
 * Whether the request whose bytes are unreadable has an answer already: it was refused for its headers, or its body
 * became unreadable while it was answered. A second answer would be taken for that of another request.
 */
function isAnswered({ request, response }: Exchange): boolean {
  return response.headersSent && !(request.complete && response.writableFinished);
}

/** What people and their programs look for, rather than those of the API. */
const WELL_KNOWN_PAGES = /^\/\.well-known\/(change-password|security\.txt)([/?]|$)/;

/** A target that is not a path reaches REST, which answers 404 (RFC 9112, section 3.2). */
function isForRest(target: string): boolean {
  if (WELL_KNOWN_PAGES.test(target)) return false;
  return !target.startsWith('/') || /^\/(v1|\.well-known)([/?]|$)/.test(target);
}

/** Answers 421 (RFC 9110, section 15.5.20): another node serves this path. */
function misdirected(role: Role, newRequestId: () => string): RequestListener {
  return refusing(421, `This node does not run the role ${role}: the request belongs to another one`, newRequestId);
}

function refusing(status: 400 | 421, detail: string, newRequestId: () => string): RequestListener {
  const body = JSON.stringify({ detail });
  return (_request, response) => {
    const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' };
    // The rest of the body is not read, so the connection cannot be used again.
    response.writeHead(status, { ...headers, 'X-Request-Id': newRequestId(), Connection: 'close' }).end(body);
  };
}
