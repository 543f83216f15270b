/** Bodies of `multipart/form-data` that arrive in pieces, as clients make them and as they should not. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'vitest';
import { boundaryOf, MalformedParts, PART_HEAD_BYTES_MAX, readFormParts } from '../../../apps/front-door/form-parts.ts';
import { once } from '../../support/object-database.ts';

const X = 'x';
type Read = readonly (readonly [name: string, bytes: Buffer])[];

async function readAll(boundary: string, body: AsyncIterable<Uint8Array>): Promise<Read> {
  const read: (readonly [string, Buffer])[] = [];
  for await (const { name, bytes } of readFormParts(boundary, body)) {
    read.push([name, Buffer.concat(await Array.fromAsync(bytes))]);
  }
  return read;
}

function readText(text: string, size = 65_536): Promise<Read> {
  return readAll(X, once(Buffer.from(text), size));
}

/** One part with this head. */
function bodyOf(head: string, bytes = 'bytes'): string {
  return `--x\r\n${head}\r\n\r\n${bytes}\r\n--x--\r\n`;
}

const named = (name: string) => `Content-Disposition: form-data; name="${name}"`;

describe('A body in parts', () => {
  test('is read as it was sent, however it arrives', async () => {
    const form = new FormData();
    const boundaryLike = Buffer.from('\r\n--\r\n------formdata\r\n-\r\r\n');
    const sent = [
      ['commit', Buffer.from('{"ä": 1}\r\n')],
      ['empty', Buffer.alloc(0)],
      ['large', randomBytes(200_000)],
      ['ä b.bin', Buffer.concat([boundaryLike, randomBytes(1_000), boundaryLike])],
      ['empty', Buffer.alloc(0)],
    ] as const;
    for (const [name, bytes] of sent) form.append(name, new Blob([Uint8Array.from(bytes)]), 'file');
    const encoded = new Response(form);
    const boundary = boundaryOf(encoded.headers.get('content-type') ?? '') ?? assert.fail('It has no boundary');
    const body = Buffer.from(await encoded.arrayBuffer());
    for (const size of [1, 2, 3, 7, 71, 1_000, 65_536, body.length]) {
      assert.deepEqual(await readAll(boundary, once(body, size)), sent, `in pieces of ${size}`);
    }
  });

  test('with a line end or none behind its last part, and other heads, is read as well', async () => {
    const wanted = [['n', Buffer.from('bytes')]];
    assert.deepEqual(await readText(bodyOf(named('n')).trimEnd()), wanted);
    for (const head of [
      named('n'),
      'content-disposition:form-data;name=n',
      'CONTENT-DISPOSITION: Form-Data ; filename="a;name=\\"b\\"" ; NAME = n',
      `Content-Type: text/plain\r\n${named('n')}\r\nX-Other: 1`,
      `${named('n')}; filename*=UTF-8''%e4`,
      `content-transfer-encoding: BINARY \r\n${named('n')}`,
    ]) {
      for (const size of [1, 65_536]) assert.deepEqual(await readText(bodyOf(head), size), wanted, head);
    }
    assert.deepEqual(await readText(`--x \t\r\n${named('a\\"b\\\\c')}\r\n\r\nbytes\r\n--x--`), [
      ['a"b\\c', Buffer.from('bytes')],
    ]);
    assert.deepEqual(await readText('--x--\r\n'), []);
  });

  test('is read without what stands around its parts, of which there may be little', async () => {
    const wanted = [['n', Buffer.from('bytes')]];
    for (const [before, behind] of [
      ['\r\n', '\r\n'],
      ['before --x\r\n', 'behind\r\n--x\r\n'],
      [`${'b'.repeat(10_000)}\r\n`, 'b'.repeat(10_000)],
    ] as const) {
      for (const size of [1, 65_536]) {
        assert.deepEqual(await readText(before + bodyOf(named('n')) + behind, size), wanted);
      }
    }
    for (const [before, behind] of [
      [`${'b'.repeat(20_000)}\r\n`, ''],
      ['', 'b'.repeat(20_000)],
    ] as const) {
      await assert.rejects(readText(before + bodyOf(named('n')) + behind, 1_000), MalformedParts);
    }
  });

  test('of another form is refused, also where it ends early', async () => {
    for (const text of [
      '',
      '--x',
      'before--x--\r\n',
      bodyOf('Content-Type: text/plain'),
      bodyOf(`${named('n')}\r\n${named('m')}`),
      bodyOf(`${named('n')}; name="m"`),
      bodyOf(`${named('n')}\r\nContent-Transfer-Encoding: base64`),
      bodyOf('Content-Disposition: attachment; name="n"'),
      bodyOf('Content-Disposition: form-data; filename="n"'),
      bodyOf('Content-Disposition: form-data; name="n'),
      bodyOf('Content-Disposition: form-data; name="n" m'),
      bodyOf(named('n')).replace('--x\r\n', '--xy\r\n'),
      ...[1, 5, 9, 20].map((left) => bodyOf(named('n')).slice(0, -left - 2)),
    ]) {
      for (const size of [1, 65_536]) await assert.rejects(readText(text, size), MalformedParts, JSON.stringify(text));
    }
    await assert.rejects(readAll(X, once(Buffer.from([...Buffer.from('--x\r\n'), 0xff]))), MalformedParts);
  });

  test('has heads up to their limit, and not one byte more', async () => {
    const headOf = (length: number) => `${named('n')}\r\nX: ${' '.repeat(length - named('n').length - 7)}`;
    // The line end of the delimiter counts as well.
    assert.equal((await readText(bodyOf(headOf(PART_HEAD_BYTES_MAX)))).length, 1);
    await assert.rejects(readText(bodyOf(headOf(PART_HEAD_BYTES_MAX + 1))), MalformedParts);
    await assert.rejects(readText(`--x\r\n${'h'.repeat(10 * PART_HEAD_BYTES_MAX)}`, 100), MalformedParts);
  });

  test('is read no further than it was asked for, and on behind a part that nobody reads', async () => {
    let asked = 0;
    const pieces = [
      `--x\r\n${named('a')}\r\n\r\n`,
      'a'.repeat(1_000),
      `\r\n--x\r\n${named('b')}\r\n\r\n`,
      'b\r\n--x--',
    ];
    async function* counted(): AsyncGenerator<Uint8Array> {
      for (const piece of pieces) {
        asked += 1;
        yield Buffer.from(piece);
      }
    }
    const parts = readFormParts(X, counted());
    const next = async () => (await parts.next()).value ?? assert.fail('There is no other part');
    const first = await next();
    assert.deepEqual([first.name, asked], ['a', 1]);
    assert.ok((await first.bytes.next()).done !== true);
    assert.equal(asked, 2);
    const second = await next();
    assert.deepEqual([second.name, asked], ['b', 3]);
    assert.equal((await parts.next()).done, true);
  });

  test('has the boundary that its type names', () => {
    for (const [type, boundary] of [
      ['multipart/form-data; boundary=----x', '----x'],
      ['multipart/form-data; charset=utf-8; Boundary="a b"', 'a b'],
      ['multipart/form-data;boundary=x;a=b', 'x'],
      ['multipart/form-data', null],
      ['multipart/form-data; boundary=', null],
      ['multipart/form-data; boundary=""', null],
      [`multipart/form-data; boundary=${'y'.repeat(71)}`, null],
    ] as const) {
      assert.equal(boundaryOf(type), boundary);
    }
  });
});
