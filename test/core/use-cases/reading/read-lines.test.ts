/** Lines of files that are too large to be read whole. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { CONTENTS_BUFFERED_BYTES_MAX } from '../../../../core/use-cases/reading/read-contents.ts';
import { INDEXED_LINES, indexLines, readLines } from '../../../../core/use-cases/reading/read-lines.ts';
import { startReading } from '../../../support/reading.ts';

const SIGNAL = new AbortController().signal;

async function* chunksOf(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('The index of a file', () => {
  test('counts its lines, whatever pieces it comes in and however it ends', async () => {
    for (const [text, lines] of [
      ['', 0],
      ['a', 1],
      ['a\n', 1],
      ['a\n\nb', 3],
    ] as const) {
      for (const size of [1, 100]) {
        const index = await indexLines(chunksOf(text, size), SIGNAL);
        assert.deepEqual([index.isText, index.lines], [true, lines], JSON.stringify(text));
      }
    }
  });

  test('says of bytes with NUL that they are no text, and reads no further', async () => {
    const read: number[] = [];
    const chunks = async function* () {
      for (const byte of [1, 0, 2]) {
        read.push(byte);
        yield Uint8Array.of(byte);
      }
    };
    assert.equal((await indexLines(chunks(), SIGNAL)).isText, false);
    assert.deepEqual(read, [1, 0]);
  });

  test('ends with its request', async () => {
    await assert.rejects(indexLines(chunksOf('a\n', 1), AbortSignal.abort()), { name: 'AbortError' });
  });
});

test('Any line of a large file is read, and where its lines begin is known afterwards', async () => {
  const reading = await startReading();
  const { node, objects } = reading;
  const line = (number: number): string => `line ${number}\n`;
  const total = Math.ceil(CONTENTS_BUFFERED_BYTES_MAX / 6);
  const text = Array.from({ length: total }, (_, n) => line(n + 1)).join('');
  const tree = objects.tree({ large: ['100644', objects.blob(text)] });
  const repository = await reading.push(await reading.repository('r'), {
    'refs/heads/master': objects.commit({ tree, seconds: 1 }),
  });
  const path = { names: [Buffer.from('large')], folder: false };
  const read = async (from: number) => {
    const wanted = { ref: null, path, from, bytesMax: 20, signal: SIGNAL };
    const found = await readLines(node, repository, wanted);
    assert.ok(!('refused' in found));
    return { total: found.total, from: found.from, text: Buffer.from(found.bytes).toString() };
  };
  for (const from of [1, 2, INDEXED_LINES, INDEXED_LINES + 1, 2 * INDEXED_LINES, total - 1]) {
    assert.deepEqual(await read(from), {
      total,
      from,
      text: (line(from) + line(from + 1) + line(from + 2)).slice(0, 20),
    });
  }
  assert.deepEqual(await read(total + 9), { total, from: total, text: line(total) });
  assert.equal(objects.openReaders(), 0);
});
