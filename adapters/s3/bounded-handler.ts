/**
 * The SDK's request handler, bounded in time and in bytes.
 *
 * Invariants: a request ends with its span, wherever the other side stops; no answer but the bytes of an object is
 * read further than the limit, whatever length it names. Those bytes are for the caller, who bounds them.
 */
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { Readable } from 'node:stream';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { MIB } from '../../core/kernel/byte-units.ts';
import { S3_CONNECTIONS_MAX } from '../../core/kernel/limits.ts';
import { type Budget, createBudget } from './budget.ts';
import { S3Failure } from './failures.ts';

/** What a bucket may answer, other than with an object: a page of 1,000 keys takes at most about 3 MiB. */
export const S3_ANSWER_BYTES_MAX = 4 * MIB;

type Request = Parameters<NodeHttpHandler['handle']>[0];
type Handled = Awaited<ReturnType<NodeHttpHandler['handle']>>;

/** Opens the connections. Each agent keeps them for reuse, and bounds their number. */
export interface S3Agents {
  /** Null: only https. */
  readonly http: HttpAgent | null;
  readonly https: HttpsAgent;
}

/** How long a bucket may take; shorter in tests. */
export interface S3Spans {
  readonly connectMs: number;
  readonly answerMs: number;
  readonly stalledMs: number;
  /** Before the first repeat of a request. */
  readonly retryMs: number;
}

export interface BoundedHandlerOptions {
  readonly agents: S3Agents;
  readonly spans: S3Spans;
  /** Returns the header `traceparent` of a request that is sent now; null or absent: it has none. */
  readonly traceparent?: () => string | null;
}

export function createBoundedHandler(options: BoundedHandlerOptions): NodeHttpHandler {
  return new BoundedHandler(options);
}

class BoundedHandler extends NodeHttpHandler {
  readonly #httpAllowed: boolean;
  readonly #answerMs: number;
  /** An agent counts only connections that are open, not those that it opens. */
  readonly #connections: Budget;
  readonly #traceparent: () => string | null;

  constructor({ agents, spans, traceparent }: BoundedHandlerOptions) {
    super({
      ...(agents.http === null ? {} : { httpAgent: agents.http }),
      httpsAgent: agents.https,
      connectionTimeout: spans.connectMs,
      // The SDK would print to the console that requests wait for a connection.
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    });
    this.#httpAllowed = agents.http !== null;
    this.#traceparent = traceparent ?? NO_TRACE;
    this.#answerMs = spans.answerMs;
    this.#connections = createBudget(S3_CONNECTIONS_MAX, spans.connectMs);
  }

  override async handle(request: Request): Promise<Handled> {
    if (request.protocol !== 'https:' && !this.#httpAllowed) {
      throw new S3Failure('target-refused', "The bucket's address is not https");
    }
    const traceparent = this.#traceparent();
    // It is not signed: a proxy between may replace it by its own.
    if (traceparent !== null) request.headers['traceparent'] = traceparent;
    const release = await this.#connections.take(1);
    let isHandedOver = false;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.#answerMs);
    try {
      const handled = await super.handle(request, { abortSignal: controller.signal });
      const { response } = handled;
      if (isObject(request, response.statusCode) && response.body instanceof Readable) {
        response.body.once('close', release);
        isHandedOver = true;
      } else {
        response.body = Readable.from([await collect(response.body, controller.signal)]);
      }
      return handled;
    } finally {
      clearTimeout(timer);
      if (!isHandedOver) release();
    }
  }
}

/** The SDK names the operation in the query of each request. */
function isObject(request: Request, status: number): boolean {
  return request.query['x-id'] === 'GetObject' && status < 300;
}

async function collect(body: unknown, signal: AbortSignal): Promise<Buffer> {
  if (!(body instanceof Readable)) throw new S3Failure('not-s3', 'The answer of the bucket has no body');
  const stop = (): void => {
    body.destroy(new S3Failure('timed-out', 'The answer of the bucket did not end in time'));
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    for await (const chunk of body) {
      if (!Buffer.isBuffer(chunk)) throw new TypeError('A body of bytes has another chunk');
      sizeBytes += chunk.byteLength;
      if (sizeBytes > S3_ANSWER_BYTES_MAX) throw new S3Failure('not-s3', 'The answer of the bucket is too long');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function ignore(): void {}

const NO_TRACE = (): null => null;
