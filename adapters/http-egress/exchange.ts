/**
 * One request and its answer over a connection, by undici.
 *
 * Invariants: the signal bounds an exchange in time; limits bound its bytes of headers, of the body and on the
 * wire, and the number of informational answers; it closes its connection however it ends; it follows no redirect.
 */
import type { Socket } from 'node:net';
import { Client, type Dispatcher, errors } from 'undici';
import { KIB, MIB } from '../../core/kernel/byte-units.ts';
import type { Exchange } from '../../core/kernel/exchange.ts';
import type { OutgoingRequest } from '../../core/ports/outgoing-requests.ts';
import { withAnswerLines } from './answer-lines.ts';
import type { Connection } from './connection.ts';
import { type Failed, failed } from './failures.ts';
import { lostExchange } from './lost-exchange.ts';
import type { Target } from './target.ts';

/**
 * In an answer to an outgoing request: the header fields of one head, the bytes of headers and trailers, and the number
 * of heads with status 1xx.
 */
export const OUTGOING_HEADERS_MAX = 100;
export const OUTGOING_HEADER_BYTES_MAX = 16 * KIB;
export const OUTGOING_INFORMATIONAL_MAX = 10;
/** The bytes that handshake, heads and framing of an answer may take, in addition to the body that is kept. */
export const OUTGOING_WIRE_OVERHEAD_BYTES_MAX = MIB;

/** How often the bytes received on the wire are checked: chunk extensions, for one, reach no handler of undici's. */
const WIRE_INTERVAL_MS = 100;

/** Sends the request and reads its answer. Rejects only for a request that undici cannot write. */
export async function exchange(
  connection: Connection,
  target: Target,
  request: OutgoingRequest,
  signal: AbortSignal,
): Promise<Exchange> {
  const client = clientOn(connection, target);
  const answer = new AnswerReader(request.answerBytesMax);
  const timedOut = (): void => answer.breakOff(failed('timed-out'));
  const wireBytesMax = request.answerBytesMax + OUTGOING_WIRE_OVERHEAD_BYTES_MAX;
  const wire = setInterval(() => {
    if (connection.receivedBytes() > wireBytesMax) answer.breakOff(failed('answer-too-large'));
  }, WIRE_INTERVAL_MS);
  signal.addEventListener('abort', timedOut, { once: true });
  try {
    client.dispatch(
      { method: request.method, path: target.path, headers: request.headers, body: request.body },
      answer.handler,
    );
    if (signal.aborted) timedOut();
    return await answer.ended;
  } finally {
    clearInterval(wire);
    signal.removeEventListener('abort', timedOut);
    connection.socket.destroy();
    await client.destroy();
  }
}

/** An undici client that uses this one connection and can open no other. */
function clientOn({ socket }: Connection, target: Target): Client {
  let isUsed = false;
  const stream = withAnswerLines(socket, OUTGOING_HEADER_BYTES_MAX);
  return new Client(target.origin, {
    connect: (_options, callback) => {
      queueMicrotask(() => {
        if (isUsed) callback(new Error('The connection is already used'), null);
        // The cast is sound: undici calls what a socket alone has only for options that are not set here.
        else callback(null, stream as Socket);
        isUsed = true;
      });
    },
    allowH2: false,
    // Makes undici send `Connection: close`: there is no second request.
    pipelining: 0,
    maxHeaderSize: OUTGOING_HEADER_BYTES_MAX,
    // Only the signal ends an exchange that takes too long.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

type Answered = Extract<Exchange, { outcome: 'answered' }>;

/** Collects the kept part of an answer; `ended` resolves with how the exchange ended. */
class AnswerReader {
  #status: number | null = null;
  readonly ended: Promise<Exchange>;
  readonly handler: Dispatcher.DispatchHandler;
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  #keptBytes = 0;
  #informational = 0;
  #controller: Dispatcher.DispatchController | null = null;
  #settle: (end: Exchange) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.ended = new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
    });
    this.handler = {
      onRequestStart: (controller) => {
        this.#controller = controller;
      },
      onResponseStart: (controller, status) => this.#onHead(status, controller.rawHeaders),
      onResponseData: (_controller, chunk) => this.#onData(chunk),
      onResponseEnd: () => this.#settle(this.#answered('whole')),
      onResponseError: (_controller, error) => this.#onError(error),
    };
  }

  /**
   * Ends the exchange before its answer has ended, unless it has already ended: with the answer if its status and
   * headers have arrived, else with this failure.
   */
  breakOff(failure: Failed): void {
    this.#stop(this.#status === null ? failure : this.#answered('cut'));
  }

  #stop(end: Exchange): void {
    this.#settle(end);
    this.#controller?.abort(new Error('The exchange was ended'));
  }

  #onHead(status: number, rawHeaders: Dispatcher.DispatchController['rawHeaders']): void {
    const headers = Array.isArray(rawHeaders) ? rawHeaders.length / 2 : 0;
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > OUTGOING_INFORMATIONAL_MAX) this.#stop(failed('answer-malformed'));
      return;
    }
    this.#status = status;
    if (status > 599) this.#stop(failed('answer-malformed', null, status));
    else if (headers > OUTGOING_HEADERS_MAX) this.#stop(failed('answer-headers-too-large', null, status));
  }

  #onData(chunk: Buffer): void {
    const room = this.#bytesMax - this.#keptBytes;
    // A copy, because undici reuses the memory of its chunks.
    this.#chunks.push(Buffer.from(chunk.subarray(0, room)));
    this.#keptBytes += Math.min(chunk.length, room);
    if (chunk.length > room) this.#stop(this.#answered('bounded'));
  }

  #answered(extent: Answered['extent']): Answered {
    if (this.#status === null) throw new TypeError('An answer ended without a status');
    return { outcome: 'answered', status: this.#status, body: Buffer.concat(this.#chunks), extent };
  }

  #onError(error: Error): void {
    if (error instanceof errors.InvalidArgumentError) this.#fail(error);
    else this.breakOff(lostExchange(error));
  }
}
