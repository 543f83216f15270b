/**
 * Requests over HTTP for the client, by Node's own modules: fetch needs ten times as long to load, and on Node 20 knows
 * no proxy.
 *
 * Invariants: a redirect is never followed, so that a token reaches no host but the one it was given for; through a
 * proxy it travels inside TLS where the service has TLS. A body that is read into memory has a largest size. The error
 * of a body that cannot be read while it is sent is thrown unchanged.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { StreamedBody } from './parts.ts';
import { type Environment, proxyFor, proxyHeaders } from './proxy.ts';

/** What an answer may have in memory. A body beyond it is an error. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** How long a connection may be silent. */
const SILENCE_MS_MAX = 120_000;

export interface WireRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | StreamedBody | null;
}

export interface WireAnswer {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly body: AsyncIterable<Uint8Array>;
}

export type Transport = (request: WireRequest) => Promise<WireAnswer>;

/**
 * How a request got no answer. refused: nothing listens, so that nothing was sent. broken: the connection was closed or
 * silent, before the answer or within it, so that the request may have arrived. other: what another try does not mend.
 */
type UnreachableKind = 'refused' | 'broken' | 'other';

/** The service did not answer, or not as HTTP. The message says what to check. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
  readonly kind: UnreachableKind;
  /** Whether a request that changes something may have been carried out all the same. */
  readonly mayBeDone: boolean;

  constructor(message: string, { cause, method = 'GET' }: { readonly cause?: unknown; readonly method?: string } = {}) {
    super(message, { cause });
    this.kind = kindOf(cause);
    this.mayBeDone = this.kind === 'broken' && !SAFE_METHODS.has(method.toUpperCase());
  }
}

/** Methods that change nothing: RFC 9110, section 9.2.1. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const BROKEN: ReadonlySet<string> = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT']);

function kindOf(error: unknown): UnreachableKind {
  if (!(error instanceof Error)) return 'other';
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ECONNREFUSED') return 'refused';
  return BROKEN.has(code) ? 'broken' : kindOf(error.cause);
}

/** Returns a transport that obeys the variables of proxies. */
export function createTransport(environment: Environment): Transport {
  return async (request) => {
    const url = new URL(request.url);
    const proxy = proxyFor(url, environment);
    try {
      const answer = await answerTo(await opened(url, request, { proxy, environment }), request.body);
      return {
        status: answer.statusCode ?? 0,
        header: (name) => [answer.headers[name.toLowerCase()] ?? []].flat()[0] ?? null,
        body: bytesOf(answer, request.method),
      };
    } catch (error) {
      if (error instanceof BodyUnread) throw error.cause;
      const message = `${url.origin} cannot be reached: ${reasonOf(error)}`;
      throw new UnreachableError(message, { cause: error, method: request.method });
    }
  };
}

/** Returns the request with its headers, not sent yet. */
async function opened(
  url: URL,
  { method, headers }: WireRequest,
  { proxy, environment }: { readonly proxy: URL | null; readonly environment: Environment },
): Promise<ClientRequest> {
  const options: RequestOptions = { method, headers: { ...headers, host: url.host } };
  if (url.protocol === 'https:') {
    const https = await import('node:https');
    const trusted = await authorities(environment);
    if (proxy === null) return https.request(url, { ...options, ...trusted });
    const socket = await tunnel(url, proxy);
    const { connect } = await import('node:tls');
    const servername = url.hostname.replaceAll(/^\[|\]$/g, '');
    const createConnection = () => connect({ socket, servername, ...trusted });
    // With an agent Node would ignore the tunnel.
    return https.request(url, { ...options, createConnection });
  }
  if (proxy === null) return (await import('node:http')).request(url, options);
  const { request } = await moduleOf(proxy);
  const sent = { ...headers, host: url.host, ...proxyHeaders(proxy) };
  return request(proxy, { method, path: url.href, headers: sent });
}

/**
 * The authorities of SSL_CERT_FILE beside Node's own, as OpenSSL's programs take them. Node itself adds those of
 * NODE_EXTRA_CA_CERTS, but only where nothing else is named.
 */
async function authorities(environment: Environment): Promise<{ readonly ca?: string[] }> {
  const named = environment['SSL_CERT_FILE'] ?? '';
  if (named === '') return {};
  const [{ rootCertificates }, { readFile }] = await Promise.all([import('node:tls'), import('node:fs/promises')]);
  const files = [named, environment['NODE_EXTRA_CA_CERTS'] ?? ''].filter((file) => file !== '');
  const texts = await Promise.all(
    files.map((file) =>
      readFile(file, 'utf8').catch((error: unknown) => {
        throw new Error(`${file} with authorities to trust cannot be read: ${reasonOf(error)}`, { cause: error });
      }),
    ),
  );
  return { ca: [...rootCertificates, ...texts] };
}

function moduleOf(url: URL) {
  return url.protocol === 'https:' ? import('node:https') : import('node:http');
}

/** Asks a proxy for a connection to the service: RFC 9110, section 9.3.6. */
async function tunnel(url: URL, proxy: URL): Promise<Socket> {
  const { request } = await moduleOf(proxy);
  const target = `${url.hostname}:${url.port || 443}`;
  const headers = { host: target, ...proxyHeaders(proxy) };
  const asked = request(proxy, { method: 'CONNECT', path: target, headers, agent: false, timeout: SILENCE_MS_MAX });
  return new Promise((resolve, reject) => {
    asked.once('timeout', () => asked.destroy(silence('the proxy does not answer')));
    asked.once('error', (error) =>
      reject(new Error(`by the proxy ${proxy.host}: ${reasonOf(error)}`, { cause: error })),
    );
    asked.once('response', ({ statusCode }) => {
      asked.destroy();
      reject(new Error(`the proxy ${proxy.host} answered with status ${statusCode}`));
    });
    asked.once('connect', ({ statusCode }, socket: Socket) => {
      if (statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(new Error(`the proxy ${proxy.host} refused with status ${statusCode}`));
    });
    asked.end();
  });
}

function answerTo(request: ClientRequest, body: WireRequest['body']): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.setTimeout(SILENCE_MS_MAX, () => request.destroy(silence('no answer within two minutes')));
    request.on('error', reject);
    request.once('response', resolve);
    if (body === null) request.end();
    else if (typeof body === 'string') request.setHeader('content-length', Buffer.byteLength(body)).end(body);
    // After an answer that came before everything was sent, its failure counts no more.
    else pipeline(readable(body), request.setHeader('content-length', body.sizeBytes)).catch(reject);
  });
}

/** The body of a request cannot be read. */
class BodyUnread extends Error {
  override readonly name = 'BodyUnread';
}

async function* readable({ bytes }: StreamedBody): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes();
  } catch (cause) {
    throw new BodyUnread('The body cannot be read', { cause });
  }
}

function silence(message: string): Error {
  return Object.assign(new Error(message), { code: 'ETIMEDOUT' });
}

async function* bytesOf(body: AsyncIterable<unknown>, method: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      if (chunk instanceof Uint8Array) yield chunk;
    }
  } catch (error) {
    throw new UnreachableError(`The answer broke off: ${reasonOf(error)}`, { cause: error, method });
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  // Several addresses were tried.
  if (error instanceof AggregateError && REASONS[code] === undefined) return reasonOf(error.errors[0]);
  return REASONS[code] ?? (error.message || code || error.name);
}

const NOT_TRUSTED =
  'its certificate is not trusted; NODE_EXTRA_CA_CERTS or SSL_CERT_FILE names a file of authorities to trust';
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ECONNRESET: 'the connection was closed',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up now',
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
};

/** Reads a body as text. */
export async function readText(body: AsyncIterable<Uint8Array>, bytesMax = BODY_BYTES_MAX): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > bytesMax) throw new UnreachableError(`The answer is larger than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
