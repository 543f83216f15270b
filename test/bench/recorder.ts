/**
 * Records what a real client sends: a proxy on the loopback interface in front of a side, and the recorded requests as
 * bytes to replay.
 *
 * Invariants: method, path, headers and body are replayed as sent; only Host, the repository's path and the
 * connection's own headers change. A request that was answered 401 is not part of an operation.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Check, Exchange, Operation } from './operation.ts';

export interface RecordedAnswer {
  readonly status: number;
  /** Names and values in alternation, as received. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface RecordedExchange {
  readonly method: string;
  readonly path: string;
  /** Names and values in alternation, as sent. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly chunked: boolean;
  readonly answer: RecordedAnswer;
}

export interface Recorder {
  readonly port: number;
  /** Returns the exchanges recorded since the last call, in order of arrival. */
  take(): readonly RecordedExchange[];
  close(): Promise<void>;
}

export async function startRecorder(upstreamPort: number): Promise<Recorder> {
  let recorded: RecordedExchange[] = [];
  const server = createServer((incoming, outgoing) => {
    forward(upstreamPort, incoming, outgoing).then(
      (exchange) => recorded.push(exchange),
      (error: unknown) => outgoing.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  });
  server.requestTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The recorder has no port');
  return {
    port: address.port,
    take() {
      const taken = recorded.filter(({ answer }) => answer.status !== 401);
      recorded = [];
      return taken;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function forward(port: number, incoming: IncomingMessage, outgoing: ServerResponse): Promise<RecordedExchange> {
  const body = await readAll(incoming);
  const headers = withoutHeaders(incoming.rawHeaders, ['host', 'connection', 'transfer-encoding', 'content-length']);
  const method = incoming.method ?? 'GET';
  const path = incoming.url ?? '/';
  const upstream = request({ host: '127.0.0.1', port, method, path, agent: false });
  for (let index = 0; index < headers.length; index += 2)
    upstream.setHeader(headers[index] ?? '', headers[index + 1] ?? '');
  upstream.end(body);
  const answered = await new Promise<IncomingMessage>((resolve, reject) => {
    upstream.once('response', resolve);
    upstream.once('error', reject);
  });
  const answer: RecordedAnswer = {
    status: answered.statusCode ?? 0,
    headers: withoutHeaders(answered.rawHeaders, ['connection', 'transfer-encoding', 'content-length', 'keep-alive']),
    body: await readAll(answered),
  };
  const chunked = incoming.headers['transfer-encoding'] !== undefined;
  outgoing.writeHead(answer.status, [...answer.headers, 'Content-Length', String(answer.body.length)]);
  outgoing.end(answer.body);
  return { method, path, headers, body, chunked, answer };
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) if (Buffer.isBuffer(part)) parts.push(part);
  return Buffer.concat(parts);
}

function withoutHeaders(raw: readonly string[], dropped: readonly string[]): readonly string[] {
  return raw.filter((_, index) => !dropped.includes((raw[index - (index % 2)] ?? '').toLowerCase()));
}

const CHUNK_BYTES = 64 * 1024;

export interface ReplayTarget {
  readonly port: number;
  /** The repository's path in the recording, and the one that replaces it. */
  readonly fromPath: string;
  readonly toPath: string;
}

export function replayOperation(exchanges: readonly RecordedExchange[], target: ReplayTarget): Operation {
  return exchanges.map((exchange) => replayExchange(exchange, target));
}

export function replayExchange(exchange: RecordedExchange, target: ReplayTarget): Exchange {
  const { method, headers, body, chunked } = exchange;
  const path = exchange.path.replace(target.fromPath, target.toPath);
  let head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${target.port}\r\n`;
  for (let index = 0; index < headers.length; index += 2) head += `${headers[index]}: ${headers[index + 1]}\r\n`;
  if (chunked) head += 'Transfer-Encoding: chunked\r\n';
  else if (method !== 'GET') head += `Content-Length: ${body.length}\r\n`;
  head += '\r\n';
  const check = checkOf(exchange);
  if (!chunked) return { parts: [Buffer.concat([Buffer.from(head, 'latin1'), body])], check };
  const parts: Uint8Array[] = [Buffer.from(head, 'latin1')];
  for (let from = 0; from < body.length; from += CHUNK_BYTES) {
    const chunk = body.subarray(from, from + CHUNK_BYTES);
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`, 'latin1'), chunk, Buffer.from('\r\n', 'latin1'));
  }
  parts.push(Buffer.from('0\r\n\r\n', 'latin1'));
  return { parts, check };
}

/** Before a chunked push git sends a single flush to try its credentials; the answer to it is empty. */
function checkOf(exchange: RecordedExchange): Check {
  if (exchange.method === 'GET') return 'flush';
  if (!exchange.path.endsWith('/git-receive-pack')) return 'flush';
  return exchange.body.toString('latin1') === '0000' ? 'ok' : 'report';
}
