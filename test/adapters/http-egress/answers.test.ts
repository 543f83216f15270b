/**
 * The attack: a hostile receiver at an allowed address answers without end, lies or floods. Whatever it does, the
 * request ends with one of the outcomes of the port, within its time and bounds, and leaves nothing open.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import type { TLSSocket } from 'node:tls';
import { beforeAll, describe, type TestContext, test, vi } from 'vitest';
import { createHttpEgress } from '../../../adapters/http-egress/egress.ts';
import {
  exchange,
  OUTGOING_HEADER_BYTES_MAX,
  OUTGOING_HEADERS_MAX,
  OUTGOING_INFORMATIONAL_MAX,
  OUTGOING_WIRE_OVERHEAD_BYTES_MAX,
} from '../../../adapters/http-egress/exchange.ts';
import type { Exchange } from '../../../core/kernel/exchange.ts';
import type { OutgoingRequest } from '../../../core/ports/outgoing-requests.ts';
import { type Authority, type Certificate, createAuthority } from '../../support/certificates.ts';
import { answering, type Behaviour, dripping, flooding, plainServer, startReceiver } from '../../support/receiver.ts';
import { tempDir } from '../../support/temp-dir.ts';

const ANSWER_BYTES_MAX = 1_000;
/** For exchanges that must end for another reason: so long that an end by timeout would be noticed. */
const LONG_MS = 60_000;
/** For exchanges that only the timeout ends. */
const SHORT_MS = 300;

let authority: Authority;
let certificate: Certificate;
beforeAll(() => {
  authority = createAuthority();
  certificate = authority.issue(['127.0.0.1']);
});

function post(port: number, more: Partial<OutgoingRequest> & { readonly authorities?: readonly string[] } = {}) {
  const { authorities = [authority.cert], ...request } = more;
  const outgoing = createHttpEgress({ ownUrls: [], privateAllowed: true, authorities });
  return outgoing.send({
    url: `https://127.0.0.1:${port}/hook`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{}'),
    spanMs: LONG_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
    ...request,
  });
}

/** How a request to a receiver of this behaviour ends. */
async function end(context: TestContext, behaviour: Behaviour, more: Partial<OutgoingRequest> = {}): Promise<Exchange> {
  const receiver = await startReceiver(context, certificate, behaviour);
  return post(receiver.port, more);
}

function failure(ended: Exchange): string {
  assert.equal(ended.outcome, 'failed', JSON.stringify(ended));
  return ended.outcome === 'failed' ? ended.failure : '';
}

/** The end of an exchange whose answer 200 has this much of a body that did not end. */
function cut(body: string): Exchange {
  return { outcome: 'answered', status: 200, body: Buffer.from(body), extent: 'cut' };
}

function answer(head: string, body = ''): Behaviour {
  return answering(`HTTP/1.1 ${head}\r\n\r\n${body}`);
}

describe('An answer', () => {
  test('is returned for any final status; a redirect is not followed', async (context) => {
    for (const status of [200, 204, 301, 302, 307, 308, 401, 404, 429, 500, 599]) {
      const receiver = await startReceiver(
        context,
        certificate,
        answer(`${status} X\r\nLocation: https://127.0.0.1:1/`),
      );
      const ended = await post(receiver.port);
      assert.deepEqual(ended, { outcome: 'answered', status, body: Buffer.alloc(0), extent: 'whole' });
      assert.equal(receiver.requests.length, 1);
    }
  });

  test('is kept up to the bound and not read beyond it', async (context) => {
    for (const [length, extent] of [
      [ANSWER_BYTES_MAX - 1, 'whole'],
      [ANSWER_BYTES_MAX, 'whole'],
      [ANSWER_BYTES_MAX + 1, 'bounded'],
      [300_000, 'bounded'],
    ] as const) {
      const ended = await end(context, answer(`200 OK\r\nContent-Length: ${length}`, 'x'.repeat(length)));
      const body = Buffer.alloc(Math.min(length, ANSWER_BYTES_MAX), 'x');
      assert.deepEqual(ended, { outcome: 'answered', status: 200, body, extent });
    }
  });

  test('without an end is returned when its bound is reached', async (context) => {
    const body = Buffer.alloc(ANSWER_BYTES_MAX, 'y');
    const answered = { outcome: 'answered', status: 200, body, extent: 'bounded' };
    const endless = flooding('HTTP/1.1 200 OK\r\n\r\n', () => 'y'.repeat(10_000));
    assert.deepEqual(await end(context, endless), answered);
    const chunk = `3e8\r\n${'y'.repeat(1_000)}\r\n`;
    const chunked = flooding('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', () => chunk);
    assert.deepEqual(await end(context, chunked), answered);
  });

  test('is not inflated: a compressed body is kept as it arrived', async (context) => {
    const ended = await end(context, answer('200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3', 'abc'));
    assert.ok(ended.outcome === 'answered');
    assert.equal(Buffer.from(ended.body).toString(), 'abc');
  });

  test('may follow a few informational answers, but not a flood of them', async (context) => {
    const hints = (count: number): string => 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'.repeat(count);
    const few = answering(`${hints(OUTGOING_INFORMATIONAL_MAX)}HTTP/1.1 204 No Content\r\n\r\n`);
    assert.equal((await end(context, few)).outcome, 'answered');
    const many = answering(`${hints(OUTGOING_INFORMATIONAL_MAX + 1)}HTTP/1.1 204 No Content\r\n\r\n`);
    assert.equal(failure(await end(context, many)), 'answer-malformed');
    assert.equal(
      failure(
        await end(
          context,
          flooding('', () => hints(100)),
        ),
      ),
      'answer-malformed',
    );
    for (const unasked of ['100 Continue', '101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade']) {
      assert.equal(failure(await end(context, answer(unasked))), 'answer-malformed');
    }
  });

  test('may have as many headers, and as large ones, as the limits allow', async (context) => {
    const many = (count: number): string => Array.from({ length: count }, (_, n) => `\r\nx${n}: 1`).join('');
    assert.equal((await end(context, answer(`204 No Content${many(OUTGOING_HEADERS_MAX)}`))).outcome, 'answered');
    const over = await end(context, answer(`204 No Content${many(OUTGOING_HEADERS_MAX + 1)}`));
    assert.equal(failure(over), 'answer-headers-too-large');
    const large = (length: number): Behaviour => answer(`204 No Content\r\nx: ${'y'.repeat(length)}`);
    assert.equal((await end(context, large(OUTGOING_HEADER_BYTES_MAX - 100))).outcome, 'answered');
    assert.equal(failure(await end(context, large(OUTGOING_HEADER_BYTES_MAX))), 'answer-headers-too-large');
    const endless = flooding('HTTP/1.1 200 OK\r\n', () => `x: ${'y'.repeat(1_000)}\r\n`);
    assert.equal(failure(await end(context, endless)), 'answer-headers-too-large');
    const line = flooding('HTTP/1.1 200 OK\r\nx: ', () => 'y'.repeat(1_000));
    assert.equal(failure(await end(context, line)), 'answer-headers-too-large', 'a line without an end');
  });

  test('may take as many bytes on the wire beside its body as the limit, and not one more', async (context) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    context.onTestFinished(() => void vi.useRealTimers());
    for (const [overhead, outcome] of [
      [OUTGOING_WIRE_OVERHEAD_BYTES_MAX, 'answered'],
      [OUTGOING_WIRE_OVERHEAD_BYTES_MAX + 1, 'answer-too-large'],
    ] as const) {
      const { promise: checked, resolve } = Promise.withResolvers<void>();
      const { port } = await plainServer(context, (socket) => {
        void checked.then(() => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
      });
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      const origin = `http://127.0.0.1:${port}`;
      const target = { origin, path: '/hook', host: '127.0.0.1', isAddress: true, isSecure: false, port };
      const exchanged = exchange(
        { socket, receivedBytes: () => ANSWER_BYTES_MAX + overhead },
        target,
        { url: origin, method: 'GET', headers: {}, body: null, spanMs: LONG_MS, answerBytesMax: ANSWER_BYTES_MAX },
        new AbortController().signal,
      );
      await vi.advanceTimersByTimeAsync(1_000);
      resolve();
      const ended = await exchanged;
      assert.equal(ended.outcome === 'failed' ? ended.failure : ended.outcome, outcome);
    }
  });

  test('that floods where no handler of undici sees it is ended by its bytes on the wire', async (context) => {
    const extension = flooding('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=', () => 'y'.repeat(10_000));
    assert.deepEqual(await end(context, extension), cut(''));
    const trailers = flooding(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n',
      () => `x: ${'y'.repeat(1_000)}\r\n`,
    );
    assert.deepEqual(await end(context, trailers), cut(''));
    const tiny = flooding(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      () => `1;${'y'.repeat(9_000)}\r\n.\r\n`,
    );
    const ended = await end(context, tiny);
    // Either bound may be reached first.
    assert.ok(ended.outcome === 'answered' && ended.extent !== 'whole');
  });

  test('whose head is not HTTP, or does not end, is malformed or lost', async (context) => {
    for (const text of [
      'SSH-2.0-OpenSSH_9.9\r\n',
      'HTTP/9.9 200 OK\r\n\r\n',
      'HTTP/1.1 20 OK\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nx',
      'HTTP/1.1 200 OK\nContent-Length: 1\nContent-Length: 2\n\nx',
      'HTTP/1.1 200 OK\r\nx y: z\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n',
      'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n',
      '\0'.repeat(1_000),
    ]) {
      assert.equal(failure(await end(context, answering(text))), 'answer-malformed', JSON.stringify(text.slice(0, 80)));
    }
    for (const text of [
      '',
      'HTTP/1.1 200',
      'HTTP/1.1 200 OK\r\n',
      'HTTP/1.1 200 OK\n',
      'HTTP/1.1 200 OK\r\nx: y\r\n',
    ]) {
      assert.equal(failure(await end(context, answering(text))), 'connection-lost', JSON.stringify(text));
    }
  });

  test('whose body breaks off or is not framed as HTTP counts by its status, and keeps what arrived', async (context) => {
    for (const [text, body] of [
      ['HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345', '12345'],
      ['HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n', ''],
      ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n5\r\ncd', 'abcd'],
      ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n', 'ab'],
    ] as const) {
      assert.deepEqual(await end(context, answering(text)), cut(body), JSON.stringify(text));
    }
    const reset: Behaviour = (socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx', () => socket.destroy());
    assert.deepEqual(await end(context, reset), cut('x'));
    assert.equal(failure(await end(context, (socket) => socket.destroy())), 'connection-lost');
  });

  // RFC 9112: 2.2, a recipient may take a single line feed as the end of a line; 6.3, equal lengths are one. Answers
  // in both forms come from scripts that print their own headers, behind servers that add theirs.
  test('may end its lines with a line feed alone, and may repeat its length', async (context) => {
    const ok = { outcome: 'answered', status: 200, body: Buffer.from('ok'), extent: 'whole' };
    for (const head of [
      'HTTP/1.1 200 OK\nContent-Length: 2\n\n',
      'HTTP/1.1 200 OK\nContent-Type: text/plain\r\n\n',
      'HTTP/1.1 103 Hints\nLink: </x>\n\nHTTP/1.1 200 OK\n\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\ncontent-length:  2 \r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\n',
      'HTTP/1.1 103 Hints\r\nContent-Length: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n',
    ]) {
      assert.deepEqual(await end(context, answering(`${head}ok`)), ok, JSON.stringify(head));
      // The same bytes, one in a packet.
      const bytes = [...`${head}ok`];
      const slowly: Behaviour = (socket) => {
        socket.setNoDelay(true);
        const timer = setInterval(() => {
          const byte = bytes.shift();
          if (byte !== undefined) socket.write(byte);
          else socket.end();
        }, 1);
        socket.on('close', () => clearInterval(timer));
      };
      assert.deepEqual(await end(context, slowly), ok, JSON.stringify(head));
    }
    const body = 'a\nb\r\nContent-Length: 1\nContent-Length: 1\n\n';
    const untouched = await end(context, answer('200 OK\r\nConnection: close', body));
    assert.deepEqual(untouched, { ...ok, body: Buffer.from(body) });
  });

  test('ends the exchange: bytes that follow it on the same connection are ignored', async (context) => {
    const twice = answering(
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 500 Smuggled\r\nContent-Length: 1\r\n\r\nb',
    );
    const ended = await end(context, twice);
    assert.ok(ended.outcome === 'answered' && ended.status === 200);
    assert.equal(Buffer.from(ended.body).toString(), 'a');
  });
});

describe('The timeout', () => {
  test('applies to the whole exchange, however slow its parts are', async (context) => {
    const status = 'HTTP/1.1 200 OK\r\n';
    for (const [behaviour, seen] of [
      [() => undefined, null],
      [dripping(status, 'x: y\r\n'), null],
      [dripping('HTTP/1.1 200 O', 'K'), null],
      [dripping(`${status}Content-Length: 900\r\n\r\n`, 'x'), 200],
      [dripping(`${status}Transfer-Encoding: chunked\r\n\r\n`, '1\r\nx\r\n'), 200],
      [dripping(`${status}Content-Length: 9\r\n\r\n`, ''), 200],
      // A stream of events (HTML, 9.2.5): a receiver that never ends its answer.
      [dripping(`${status}Content-Type: text/event-stream\r\n\r\n`, ': ping\n\n'), 200],
    ] as const) {
      const ended = await end(context, behaviour, { spanMs: SHORT_MS });
      if (seen === null)
        assert.deepEqual(ended, { outcome: 'failed', failure: 'timed-out', status: seen, detail: null });
      else assert.ok(ended.outcome === 'answered' && ended.status === seen && ended.extent === 'cut');
    }
  });

  test('applies while the receiver does not read the request', async (context) => {
    const { port } = await plainServer(context, (socket) => socket.pause());
    assert.equal(failure(await post(port, { spanMs: SHORT_MS })), 'timed-out');
    const deaf: Behaviour = (socket) => socket.pause();
    const body = Buffer.alloc(8 * 1024 * 1024);
    assert.equal(failure(await end(context, deaf, { spanMs: SHORT_MS, body })), 'timed-out');
  });

  test('that has passed before the exchange begins sends no request', async (context) => {
    const receiver = await startReceiver(context, certificate);
    assert.equal(failure(await post(receiver.port, { spanMs: 0 })), 'timed-out');
    assert.deepEqual(receiver.requests, []);
  });
});

describe('A connection', () => {
  test('that is refused, reset or without TLS fails, each with its own code', async (context) => {
    const gone = await plainServer(context, () => undefined);
    await gone.close();
    const refused = await post(gone.port);
    assert.deepEqual(refused, {
      outcome: 'failed',
      failure: 'connection-failed',
      status: null,
      detail: 'ECONNREFUSED',
    });
    const resetting = await plainServer(context, (socket) => socket.once('data', () => socket.resetAndDestroy()));
    assert.equal(failure(await post(resetting.port)), 'tls-failed');
    const plain = await plainServer(context, (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    assert.equal(failure(await post(plain.port)), 'tls-failed');
  });

  test('is made only to a server that proves its name', async (context) => {
    for (const [wrong, authorities] of [
      [authority.issue(['127.0.0.1'], { expired: true }), [authority.cert]],
      [authority.issue(['127.0.0.2']), [authority.cert]],
      [authority.issue(['other.example']), [authority.cert]],
      [createAuthority().issue(['127.0.0.1']), [authority.cert]],
      [certificate, [createAuthority('Another').cert]],
    ] as const) {
      const receiver = await startReceiver(context, wrong);
      const ended = await post(receiver.port, { authorities });
      assert.equal(failure(ended), 'certificate-invalid');
      assert.match((ended.outcome === 'failed' && ended.detail) || '', /^[A-Z_]+$/);
      assert.deepEqual(receiver.requests, []);
    }
  });

  test('is closed when its exchange ends', async (context) => {
    const sockets: TLSSocket[] = [];
    const keepsOpen: Behaviour = (socket) => {
      sockets.push(socket);
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n');
    };
    assert.equal((await end(context, keepsOpen)).outcome, 'answered');
    const [socket] = sockets;
    assert.ok(socket !== undefined);
    if (!socket.closed) await once(socket, 'close');
  });
});

describe('An authority of NODE_EXTRA_CA_CERTS', () => {
  /** The outcome in a process with this environment. */
  async function sentBy(port: number, environment: Readonly<Record<string, string>>): Promise<Exchange> {
    const module = path.resolve(import.meta.dirname, '../../../adapters/http-egress/egress.ts');
    const script = `
      const { createHttpEgress } = await import(${JSON.stringify(module)});
      const outgoing = createHttpEgress({ ownUrls: [], privateAllowed: true });
      const url = 'https://127.0.0.1:${port}/';
      const request = { url, method: 'GET', headers: {}, body: null, spanMs: ${LONG_MS}, answerBytesMax: 1 };
      console.log(JSON.stringify(await outgoing.send(request)));`;
    const { NODE_EXTRA_CA_CERTS: _, ...inherited } = process.env;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      env: { ...inherited, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    await once(child, 'close');
    return JSON.parse(printed) as Exchange;
  }

  test('is trusted, and without the variable it is not', async (context) => {
    const receiver = await startReceiver(context, certificate);
    const file = path.join(await tempDir(context), 'authority.pem');
    await writeFile(file, authority.cert);
    const [trusting, wary, careless] = await Promise.all([
      sentBy(receiver.port, { NODE_EXTRA_CA_CERTS: file }),
      sentBy(receiver.port, {}),
      sentBy(receiver.port, { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }),
    ]);
    assert.ok(trusting.outcome === 'answered' && trusting.status === 204, JSON.stringify(trusting));
    assert.equal(failure(wary), 'certificate-invalid');
    assert.equal(failure(careless), 'certificate-invalid', 'nor does the environment turn that off');
  });
});

describe('A request that cannot be written', () => {
  test('rejects as a bug, and is not an outcome', async (context) => {
    const receiver = await startReceiver(context, certificate);
    await assert.rejects(post(receiver.port, { headers: { x: 'a\r\nb: c' } }), { code: 'UND_ERR_INVALID_ARG' });
    assert.deepEqual(receiver.requests, []);
  });
});
