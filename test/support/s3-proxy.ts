/**
 * An HTTP proxy in front of an S3 server that does to each request what a test says: the faults of networks and of busy
 * buckets.
 */
import { once } from 'node:events';
import {
  type ClientRequest,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUp, type Ending } from './cleanup.ts';

export type S3Fault =
  /** The server does not see the request. Without a code the answer has no body. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly code: string | null;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
      /** In place of an error in S3's form. */
      readonly body?: Buffer;
    }
  | { readonly kind: 'no-answer' }
  /** Something happens before the server gets the request. */
  | { readonly kind: 'after'; readonly work: () => Promise<void> }
  | { readonly kind: 'delay'; readonly ms: number }
  /** The answer names no length of its body, and breaks after this many bytes, if any. */
  | { readonly kind: 'without-length'; readonly afterBytes?: number }
  /** The answer has a body without an end. */
  | { readonly kind: 'endless' }
  /** The server carries the request out, and the connection breaks instead of the answer. */
  | { readonly kind: 'lose-answer' }
  /** The server gets the request twice; the client gets the second answer. */
  | { readonly kind: 'twice' }
  /** After this many bytes of the answer's body the connection breaks, or nothing more comes. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  | { readonly kind: 'stall'; readonly afterBytes: number };

export interface S3Request {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface S3Proxy {
  readonly url: string;
  /** Method and query of each request so far. */
  readonly requests: readonly string[];
  readonly connectionsMax: () => number;
  /** Decides what happens to a request; null for nothing. */
  fault: (request: S3Request) => S3Fault | null;
}

export async function startS3Proxy(context: Ending, port: number): Promise<S3Proxy> {
  const requests: string[] = [];
  let open = 0;
  let openMax = 0;
  const server = createServer((asked, answer) => {
    const [method, url] = [asked.method ?? '', asked.url ?? ''];
    requests.push(`${method} ${url.replace(/^[^?]*\??/, '')}`);
    const decide = (body: Buffer): S3Fault | null => proxy.fault({ method, url, headers: asked.headers, body });
    carryOut(asked, answer, port, decide).catch(() => answer.destroy());
  });
  server.on('connection', (socket) => {
    open += 1;
    openMax = Math.max(openMax, open);
    socket.on('close', () => (open -= 1));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The proxy has no port');
  cleanUp(context, async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const proxy: S3Proxy = {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    connectionsMax: () => openMax,
    fault: () => null,
  };
  return proxy;
}

async function carryOut(
  asked: IncomingMessage,
  answer: ServerResponse,
  port: number,
  decide: (body: Buffer) => S3Fault | null,
): Promise<void> {
  const body = Buffer.concat(await Array.fromAsync(asked as AsyncIterable<Buffer>));
  const fault = decide(body);
  if (fault?.kind === 'no-answer') return;
  if (fault?.kind === 'delay') await sleep(fault.ms);
  if (fault?.kind === 'after') await fault.work();
  if (fault?.kind === 'answer') {
    const text = `<?xml version="1.0"?><Error><Code>${fault.code}</Code><Message>${fault.message ?? fault.code}</Message></Error>`;
    answer
      .writeHead(fault.status, { 'content-type': 'application/xml', ...fault.headers })
      .end(fault.body ?? (asked.method === 'HEAD' || fault.code === null ? '' : text));
    return;
  }
  if (fault?.kind === 'endless') {
    answer.writeHead(200);
    for (; !answer.destroyed; await sleep(1)) answer.write(Buffer.alloc(1_024));
    return;
  }
  if (fault?.kind === 'twice') (await forward(asked, body, port)).resume();
  const forwarded = await forward(asked, body, port);
  if (fault?.kind === 'lose-answer') {
    forwarded.resume();
    await once(forwarded, 'end');
    answer.destroy();
    return;
  }
  if (fault?.kind === 'without-length') delete forwarded.headers['content-length'];
  answer.writeHead(forwarded.statusCode ?? 500, forwarded.headers);
  let left = (fault !== null && 'afterBytes' in fault ? fault.afterBytes : null) ?? Number.POSITIVE_INFINITY;
  answer.on('close', () => forwarded.destroy());
  for await (const chunk of forwarded as AsyncIterable<Buffer>) {
    answer.write(chunk.subarray(0, left));
    while (answer.writableNeedDrain && !answer.destroyed) await sleep(1);
    left -= chunk.length;
    if (left > 0) continue;
    if (fault?.kind === 'stall') return;
    // What was written is to arrive before the connection breaks.
    await sleep(20);
    answer.destroy();
    return;
  }
  answer.end();
}

async function forward(asked: IncomingMessage, body: Buffer, port: number): Promise<IncomingMessage> {
  const { method, url: path, headers } = asked;
  const sent: ClientRequest = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
  sent.end(body);
  const [forwarded] = (await once(sent, 'response')) as [IncomingMessage];
  return forwarded;
}
