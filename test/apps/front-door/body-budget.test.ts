/** Bodies of requests in memory: how many bytes, whose, and for how long. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, test } from 'vitest';
import { JSON_BODY_BYTES_MAX, PUBLIC_BODY_BYTES_MAX } from '../../../apps/api/app.ts';
import { BODY_BOUNDS, createBodyBudget } from '../../../apps/front-door/body-budget.ts';
import { BodyError } from '../../../apps/git-http/body.ts';
import { readWhole } from '../../../apps/git-http/whole-body.ts';
import { createPacketFraming } from '../../../core/git/wire/packet-framing.ts';
import { dataPacket, FLUSH_PACKET, PACKET_PAYLOAD_BYTES_MAX } from '../../../core/git/wire/pkt-line.ts';
import { BODY_CHUNK_HELD_BYTES } from '../../../core/kernel/limits.ts';
import { type ApiFixture, createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { eventually } from '../../support/processes.ts';

const ADA = { account: 'ada' };
const { accounts: ACCOUNTS, strangers: STRANGERS } = BODY_BOUNDS;

describe('The memory for bodies', () => {
  test('has a part for each caller, to the byte, and what is released can be held again', () => {
    const budget = createBodyBudget();
    const [one, two] = [budget.open(ADA), budget.open(ADA)];
    assert.equal(one.grow(ACCOUNTS.account.bytesMax - 1), null);
    assert.equal(two.grow(2)?.status, 429);
    assert.equal(two.grow(1), null);
    assert.equal(two.grow(1)?.status, 429);
    assert.equal(budget.open({ account: 'grace' }).grow(1), null);
    one.release();
    one.release();
    assert.equal(budget.heldBytes(), 2);
    assert.equal(two.grow(ACCOUNTS.account.bytesMax - 1), null);
  });

  test('gives each caller little while much of it is taken, and never more than there is', () => {
    const budget = createBodyBudget();
    for (let n = 0; budget.heldBytes() < ACCOUNTS.roomyBytesMax; n += 1) {
      assert.equal(budget.open({ account: `greedy ${n}` }).grow(ACCOUNTS.account.bytesMax), null);
    }
    const ada = budget.open(ADA);
    assert.equal(ada.grow(ACCOUNTS.account.tightBytesMax + 1)?.status, 429);
    assert.equal(ada.grow(ACCOUNTS.account.tightBytesMax), null);
    for (let n = 0; n < 100; n += 1) budget.open({ account: `other ${n}` }).grow(ACCOUNTS.account.tightBytesMax);
    assert.equal(budget.open({ account: 'late' }).grow(ACCOUNTS.account.tightBytesMax)?.status, 503);
    assert.ok(budget.heldBytes() <= ACCOUNTS.bytesMax);
  });

  test('is not taken from accounts by strangers, nor all of theirs by one /48 of IPv6', () => {
    const budget = createBodyBudget();
    const fill = (address: string, bytes: number): void => {
      for (let left = bytes; left > 0; left -= 1024) if (budget.open({ address }).grow(1024) !== null) return;
    };
    fill('2001:db8:1::1', STRANGERS.bytesMax);
    assert.equal(budget.heldBytes(), STRANGERS.network.bytesMax);
    for (let n = 1; n < 64; n += 1) fill(`2001:db8:1:${n.toString(16)}::1`, STRANGERS.bytesMax);
    assert.equal(budget.heldBytes(), STRANGERS.wideNetwork.bytesMax);
    assert.equal(budget.open({ address: '2001:db8:2::1' }).grow(1024), null);

    // Many such: others have little then, and accounts as much as before.
    for (let n = 2; budget.heldBytes() < STRANGERS.roomyBytesMax; n += 1) {
      for (const host of [1, 2]) fill(`2001:db8:${n}:${host}::1`, STRANGERS.network.bytesMax);
    }
    const before = budget.heldBytes();
    for (let n = 0; n < 64; n += 1) fill(`2001:db9::${n}:0:0:0:1`, STRANGERS.network.bytesMax);
    assert.ok(budget.heldBytes() - before <= STRANGERS.wideNetwork.tightBytesMax);
    for (let n = 0; n < 200; n += 1) fill(`10.1.${n}.1`, STRANGERS.network.bytesMax);
    assert.equal(budget.open({ address: '10.2.0.1' }).grow(1024)?.status, 503);
    assert.equal(budget.heldBytes(), STRANGERS.bytesMax);
    assert.equal(budget.open(ADA).grow(ACCOUNTS.account.bytesMax), null);
  });
});

describe('A body that is read whole', () => {
  const options = (spanMs = 5_000) => ({
    ...{ bytesMax: 100, spanMs },
    ...{ held: createBodyBudget().open(ADA), isWanted: () => true },
  });
  async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
    for (const text of texts) yield Buffer.from(text);
  }

  test('ends in time, however slowly it comes', async () => {
    async function* drops(): AsyncGenerator<Uint8Array> {
      for (;;) {
        yield Buffer.from('x');
        await sleep(20);
      }
    }
    const reading = readWhole(drops(), { ...options(100), bytesMax: 1_000_000 });
    await assert.rejects(reading, (error) => error instanceof BodyError && error.code === 'body-too-slow');
  });

  test('is not read on when it is not wanted any more, or has no room', async () => {
    const unwanted = await readWhole(chunks('wrong', 'more'), { ...options(), isWanted: () => false });
    assert.equal(unwanted.toString(), 'wrong');
    const held = createBodyBudget().open(ADA);
    assert.equal(held.grow(ACCOUNTS.account.bytesMax - BODY_CHUNK_HELD_BYTES - 3), null);
    const refused = readWhole(chunks('abc', 'd'), { ...options(), held });
    await assert.rejects(refused, (error) => error instanceof BodyError && error.code === 'body-of-caller-held');
  });
});

describe('The framing of packets', () => {
  test('holds for packets however they are split, and for the largest, and ends at the first wrong byte', () => {
    const whole = Buffer.concat([
      dataPacket('want 1'),
      FLUSH_PACKET,
      dataPacket(Buffer.alloc(PACKET_PAYLOAD_BYTES_MAX)),
      Buffer.from('00010002000400Aa'),
    ]);
    for (const size of [1, 3, 7, whole.length]) {
      const framing = createPacketFraming();
      for (let at = 0; at < whole.length; at += size) assert.equal(framing(whole.subarray(at, at + size)), true);
    }
    for (const wrong of ['\0', 'fff1', 'xyzw', '000g', '-001']) {
      assert.equal(createPacketFraming()(Buffer.from(`0000${wrong}`)), false, wrong);
    }
  });
});

test('Zeros that gzip made small are refused at the first of them, not when all are there', async () => {
  const fixture = await createApiFixture();
  const git = await startGit(fixture);
  try {
    const account = await fixture.account('ada');
    await fixture.repository(account, 'engine');
    const token = await fixture.token(account);
    const zeros = gzipSync(Buffer.alloc(24 * 1024 * 1024));
    const socket = connect(git.port, '127.0.0.1');
    const basic = Buffer.from(`ada:${token.secret}`).toString('base64');
    const head = [
      'POST /r/ada/engine.git/git-upload-pack HTTP/1.1',
      'Host: localhost',
      `Authorization: Basic ${basic}`,
      'Content-Type: application/x-git-upload-pack-request',
      'Content-Encoding: gzip',
      `Content-Length: ${zeros.length}`,
    ];
    // The rest never comes.
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(zeros.subarray(0, zeros.length - 100));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 200 [^]*ERR /);
    assert.equal(fixture.context.bodyBudget.heldBytes(), 0);
  } finally {
    await git.close();
    await fixture.close();
  }
});

describe('A caller of the API', () => {
  /** The head of a request with a body of JSON, as that of `secret` or of a stranger. */
  const headOf = (target: string, lengthBytes: number, secret: string | null): string =>
    [
      `POST ${target} HTTP/1.1`,
      'Host: a',
      ...(secret === null ? [] : [`Authorization: Bearer ${secret}`]),
      'Content-Type: application/json',
      `Content-Length: ${lengthBytes}\r\n\r\n`,
    ].join('\r\n');
  /** Every address of 127.0.0.0/8 is this machine, so a client can come from many networks. */
  const send = (port: number, bytes: string, address = '127.0.0.1'): Socket => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address });
    socket.on('error', () => undefined);
    socket.resume();
    socket.write(bytes);
    return socket;
  };
  const held = async (fixture: ApiFixture, holds: (bytes: number) => boolean): Promise<void> => {
    for (let n = 0; n < 500 && !holds(fixture.context.bodyBudget.heldBytes()); n += 1) await sleep(10);
    assert.ok(
      holds(fixture.context.bodyBudget.heldBytes()),
      `${fixture.context.bodyBudget.heldBytes()} bytes are held`,
    );
  };

  test('who holds bodies open gets no memory beyond its part, and others do', async () => {
    const fixture = await createApiFixture();
    const port = await fixture.listen();
    const sockets: Socket[] = [];
    try {
      const [ada, grace] = [await fixture.account('ada'), await fixture.account('grace')];
      const [greedy, other] = [await fixture.token(ada), await fixture.token(grace)];
      const begun = ' '.repeat(JSON_BODY_BYTES_MAX - 1);
      const open = 8;
      for (let n = 0; n < open; n += 1) {
        sockets.push(send(port, headOf('/v1/repositories', JSON_BODY_BYTES_MAX, greedy.secret) + begun));
      }
      await held(fixture, (bytes) => bytes >= open * begun.length);
      const rest = fixture.context.bodyBudget.open({ account: ada });
      assert.equal(rest.grow(ACCOUNTS.account.bytesMax - fixture.context.bodyBudget.heldBytes()), null);
      const body = { name: 'hello' };
      const refused = await fixture.request('POST', '/v1/repositories', greedy, { body });
      assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '5']);
      assert.match(refused.json().detail, /Too many bytes of your requests/);
      assert.equal((await fixture.request('POST', '/v1/repositories', other, { body })).statusCode, 201);
      rest.release();
      for (const socket of sockets) socket.destroy();
      await held(fixture, (bytes) => bytes === 0);
      assert.equal((await fixture.request('POST', '/v1/repositories', greedy, { body })).statusCode, 201);
    } finally {
      for (const socket of sockets) socket.destroy();
      await fixture.close();
    }
  });

  test('who announces bodies and sends none takes nothing from others: a stranger of 27 networks', async () => {
    const fixture = await createApiFixture();
    const port = await fixture.listen();
    const sockets: Socket[] = [];
    try {
      const token = await fixture.token(await fixture.account('ada'));
      for (let n = 0; n < 256; n += 1) {
        const head = headOf('/v1/auth/sessions', PUBLIC_BODY_BYTES_MAX, null);
        sockets.push(send(port, head, `127.1.${n % 27}.1`));
      }
      // Who leaves immediately holds nothing either.
      for (let n = 0; n < 64; n += 1) {
        const socket = send(port, `${headOf('/v1/repositories', JSON_BODY_BYTES_MAX, token.secret)}{"name"`);
        socket.once('connect', () => setImmediate(() => socket.resetAndDestroy()));
      }
      await sleep(500);
      // On a busy machine those who leave are seen to leave later.
      await held(fixture, (bytes) => bytes === 0);
      const made = await fixture.request('POST', '/v1/repositories', token, { body: { name: 'hello' } });
      assert.equal(made.statusCode, 201);
    } finally {
      for (const socket of sockets) socket.destroy();
      await fixture.close();
    }
  });

  test('who sends bytes one by one holds what they take in memory, not what they are', async () => {
    const fixture = await createApiFixture();
    const port = await fixture.listen();
    let socket: Socket | null = null;
    try {
      const { secret } = await fixture.token(await fixture.account('ada'));
      const head = headOf('/v1/repositories', 0, secret).replace('Content-Length: 0', 'Transfer-Encoding: chunked');
      socket = send(port, head + '1\r\n \r\n'.repeat(1_000));
      await held(fixture, (bytes) => bytes === 1_000 * (1 + BODY_CHUNK_HELD_BYTES));
    } finally {
      socket?.destroy();
      await fixture.close();
    }
  });

  test('without an account sends at most 64 KiB', async () => {
    const fixture = await createApiFixture();
    try {
      const payload = (bytes: number) => `{"hostname":"${'h'.repeat(bytes)}"}`;
      const headers = { 'content-type': 'application/json' };
      const post = (bytes: number) =>
        fixture.app.inject({ method: 'POST', url: '/v1/auth/sessions', headers, payload: payload(bytes) });
      const overhead = payload(0).length;
      assert.equal((await post(PUBLIC_BODY_BYTES_MAX - overhead)).statusCode, 422);
      const refused = await post(PUBLIC_BODY_BYTES_MAX - overhead + 1);
      assert.equal(refused.statusCode, 413);
      assert.match(refused.json().detail, /larger than 65536 bytes/);
    } finally {
      await fixture.close();
    }
  });

  test('whose body does not arrive is told so, and the connection ends', async () => {
    const fixture = await createApiFixture({ timeouts: { body: 100, idle: 5_000 } });
    try {
      const { secret } = await fixture.token(await fixture.account('ada'));
      const socket = connect(await fixture.listen(), '127.0.0.1');
      const head = `POST /v1/repositories HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\n`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`);
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk.toString('latin1');
      });
      await once(socket, 'close');
      assert.match(answer, /^HTTP\/1\.1 408 [^]*The body took too long to arrive: send it without pauses/);
      assert.equal(fixture.context.bodyBudget.heldBytes(), 0);
    } finally {
      await fixture.close();
    }
  });

  test('whose body was refused as too large before its end is no failure of the server when its time is over', async (context) => {
    const fixture = await createApiFixture({ timeouts: { body: 100, idle: 5_000 } });
    const uncaught: unknown[] = [];
    const note = (cause: unknown): void => void uncaught.push(cause);
    process.on('uncaughtException', note);
    cleanUp(context, () => void process.off('uncaughtException', note));
    cleanUp(context, () => fixture.close());
    const { secret } = await fixture.token(await fixture.account('ada'));
    const socket = connect(await fixture.listen(), '127.0.0.1');
    const head = `POST /v1/repositories HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\n`;
    socket.write(`${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`);
    const size = JSON_BODY_BYTES_MAX + 1;
    // The end of the body never comes.
    socket.write(`${size.toString(16)}\r\n${' '.repeat(size)}`);
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 413 /);
    await sleep(300);
    assert.deepEqual(uncaught, []);
    await eventually('nothing is held', () => fixture.context.bodyBudget.heldBytes() === 0);
  });
});
