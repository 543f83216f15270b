/**
 * Every kind of receiver that webhooks meet, and the expected result of an attempt at each (docs/workflows.md, Webhook
 * deliveries): 2xx is a success, whatever becomes of the body behind it; everything else is retried. How answers
 * are framed, and which faults of it a recipient takes, is of RFC 9112 (2.2 and 6.3).
 *
 * Invariants: each receiver behaves the same at every connection and listens only on the loopback interface.
 */
import { gzipSync } from 'node:zlib';
import type { OutgoingFailure } from '../../core/kernel/exchange.ts';
import { WEBHOOK_ANSWER_BYTES_MAX } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { type Authority, type Certificate, createAuthority } from './certificates.ts';
import type { Ending } from './cleanup.ts';
import { answering, type Behaviour, dripping, flooding, plainServer, startReceiver } from './receiver.ts';
import { selfSignedCertificate } from './self-signed-certificate.ts';

export interface ReceiverKind {
  readonly what: string;
  /** The status that the attempt records; null for none. */
  readonly httpStatus: number | null;
  /** The error that the attempt records; null for a success. */
  readonly error: OutgoingFailure | 'status-not-2xx' | null;
  /** `answer-cut` if the attempt records that; null for none, or for a code of the platform. */
  readonly detail: 'answer-cut' | null;
  /** How many bytes of the answer's body the attempt keeps. */
  readonly keptBytes: number;
  /** Starts a receiver and resolves with its port. */
  readonly start: (context: Ending, authority: Authority) => Promise<number>;
}

/** `elsewhere` is the location that redirects name. */
export function receiverKinds(elsewhere: string): readonly ReceiverKind[] {
  return [...answers(elsewhere), ...slow(), ...broken(), ...unreachable()];
}

function answers(elsewhere: string): readonly ReceiverKind[] {
  const location = `Location: ${elsewhere}\r\n`;
  const length = 4 * WEBHOOK_ANSWER_BYTES_MAX;
  const endless = (head: string): Behaviour => flooding(`HTTP/1.1 ${head}\r\n\r\n`, () => 'y'.repeat(10_000));
  const bomb = gzipSync(Buffer.alloc(50_000_000), { level: 9 }).toString('latin1');
  const gzip = `Content-Encoding: gzip\r\nContent-Length: ${bomb.length}`;
  const full = WEBHOOK_ANSWER_BYTES_MAX;
  return [
    succeeding('answers 200', 200, answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), 2),
    succeeding('answers 204', 204, answering('HTTP/1.1 204 No Content\r\n\r\n')),
    succeeding('answers 299', 299, answering('HTTP/1.1 299 Odd\r\nContent-Length: 0\r\n\r\n')),
    succeeding('answers with HTTP/1.0', 200, answering('HTTP/1.0 200 OK\r\n\r\nold'), 3),
    succeeding(
      'sends 103 Early Hints before its answer',
      204,
      answering('HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'),
    ),
    succeeding('sends an endless answer', 200, endless('200 OK'), full),
    succeeding(
      'answers with more bytes than its Content-Length',
      200,
      answering('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc'),
      1,
    ),
    succeeding(
      'answers four times what is kept',
      200,
      answering(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${'z'.repeat(length)}`),
      full,
    ),
    succeeding(
      'answers with a gzip bomb, which is not inflated',
      200,
      (socket) => socket.end(Buffer.from(`HTTP/1.1 200 OK\r\n${gzip}\r\n\r\n${bomb}`, 'latin1')),
      full,
    ),
    failing('sends an endless error', 500, 'status-not-2xx', endless('500 Error'), full),
    ...[301, 302, 303, 307, 308].map((status) =>
      failing(
        `redirects by ${status}`,
        status,
        'status-not-2xx',
        answering(`HTTP/1.1 ${status} Elsewhere\r\n${location}Content-Length: 0\r\n\r\n`),
      ),
    ),
    ...[304, 400, 401, 404, 410, 429, 500, 503].map((status) => refusing(status)),
  ];
}

function refusing(status: number): ReceiverKind {
  const body = status === 304 ? '' : 'no';
  const text = `HTTP/1.1 ${status} Refused\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  return failing(`answers ${status}`, status, 'status-not-2xx', answering(text), body.length);
}

function slow(): readonly ReceiverKind[] {
  const head = 'HTTP/1.1 200 OK\r\n';
  return [
    failing('never answers', null, 'timed-out', () => undefined),
    failing('drips its headers', null, 'timed-out', dripping(head, 'x: y\r\n', 100)),
    failing('sends 103 Early Hints and then nothing', null, 'timed-out', (socket) =>
      socket.write('HTTP/1.1 103 Hints\r\n\r\n'),
    ),
    listening('never shakes hands', 'timed-out', async (context) => {
      return (await plainServer(context, (socket) => socket.pause())).port;
    }),
  ];
}

function broken(): readonly ReceiverKind[] {
  const head = 'HTTP/1.1 200 OK\r\n';
  const length = 'Content-Length: 5\r\n';
  const cut = `${head}Content-Length: 10\r\n\r\n`;
  const large = `${head}x: ${'y'.repeat(100_000)}\r\n\r\n`;
  const many = `${head}${Array.from({ length: 1_000 }, (_, n) => `x${n}: 1\r\n`).join('')}\r\n`;
  const extension = flooding(`${head}Transfer-Encoding: chunked\r\n\r\n1;x=`, () => 'y'.repeat(10_000));
  return [
    failing('closes without an answer', null, 'connection-lost', (socket) => socket.end()),
    failing('closes before its headers end', null, 'connection-lost', answering(head)),
    failing(
      'breaks off in the body of an error',
      500,
      'status-not-2xx',
      answering('HTTP/1.1 500 Error\r\nContent-Length: 10\r\n\r\n12345'),
      5,
      'answer-cut',
    ),
    succeeding('breaks off in its body', 200, answering(`${cut}12345`), 5, 'answer-cut'),
    succeeding(
      'resets the connection in its body',
      200,
      (socket) => socket.write(`${cut}12345`, () => socket.destroy()),
      5,
      'answer-cut',
    ),
    succeeding(
      'sends half of its body and then nothing',
      200,
      (socket) => socket.write(`${cut}12345`),
      5,
      'answer-cut',
    ),
    succeeding('sends an endless chunk extension', 200, extension, 0, 'answer-cut'),
    succeeding('repeats its Content-Length', 200, answering(`${head}${length}${length}\r\n12345`), 5),
    failing('has two lengths', null, 'answer-malformed', answering(`${head}${length}Content-Length: 6\r\n\r\n12345`)),
    failing(
      'has a length beside Transfer-Encoding',
      null,
      'answer-malformed',
      answering(`${head}${length}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    ),
    succeeding('ends its lines with a line feed alone', 200, answering('HTTP/1.1 200 OK\nX: y\n\n12345'), 5),
    failing('sends only 100 Continue', null, 'answer-malformed', answering('HTTP/1.1 100 Continue\r\n\r\n')),
    failing('sends only 103 Early Hints', null, 'connection-lost', answering('HTTP/1.1 103 Hints\r\n\r\n')),
    failing(
      'switches protocols',
      null,
      'answer-malformed',
      answering('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    ),
    failing('speaks another protocol', null, 'answer-malformed', answering('SSH-2.0-OpenSSH_9.9\r\n')),
    failing('answers with an invalid status', 999, 'answer-malformed', answering('HTTP/1.1 999 X\r\n\r\n')),
    failing('sends a huge header', null, 'answer-headers-too-large', answering(large)),
    failing('sends a thousand headers', 200, 'answer-headers-too-large', answering(many)),
  ];
}

function unreachable(): readonly ReceiverKind[] {
  const certified = (what: string, certify: (authority: Authority) => Certificate): ReceiverKind =>
    listening(what, 'certificate-invalid', async (context, authority) => {
      return (await startReceiver(context, certify(authority))).port;
    });
  return [
    listening('refuses connections', 'connection-failed', async (context) => {
      const server = await plainServer(context, () => undefined);
      await server.close();
      return server.port;
    }),
    listening('resets connections', 'tls-failed', async (context) => {
      return (await plainServer(context, (socket) => socket.once('data', () => socket.resetAndDestroy()))).port;
    }),
    listening('speaks without TLS', 'tls-failed', async (context) => {
      return (await plainServer(context, (socket) => socket.end(`HTTP/1.1 200 OK\r\n\r\n`))).port;
    }),
    certified('has a self-signed certificate', () => selfSignedCertificate()),
    certified('has a certificate of an unknown authority', () => createAuthority('Another').issue(['127.0.0.1'])),
    certified('has a certificate for another name', (authority) => authority.issue(['other.example'])),
    certified('has a certificate that expired', (authority) => authority.issue(['127.0.0.1'], { expired: true })),
  ];
}

function succeeding(
  what: string,
  httpStatus: number,
  behaviour: Behaviour,
  keptBytes = 0,
  detail: ReceiverKind['detail'] = null,
): ReceiverKind {
  return { what, httpStatus, error: null, detail, keptBytes, start: starting(behaviour) };
}

function failing(
  what: string,
  httpStatus: number | null,
  error: NonNullable<ReceiverKind['error']>,
  behaviour: Behaviour,
  keptBytes = 0,
  detail: ReceiverKind['detail'] = null,
): ReceiverKind {
  return { what, httpStatus, error, detail, keptBytes, start: starting(behaviour) };
}

function starting(behaviour: Behaviour): ReceiverKind['start'] {
  return async (context, authority) => (await startReceiver(context, authority.issue(['127.0.0.1']), behaviour)).port;
}

function listening(what: string, error: OutgoingFailure, start: ReceiverKind['start']): ReceiverKind {
  return { what, httpStatus: null, error, detail: null, keptBytes: 0, start };
}
