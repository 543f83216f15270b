/** Which answers are compressed, and the memory of those that are kept beside their bodies. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { encodeJson } from '../../../apps/api/body-cache.ts';
import { COMPRESSED_ANSWER_BYTES_MIN, compressedAnswer } from '../../../apps/api/http/compression.ts';

// The attack: an account reads thousands of small lists with `Accept-Encoding: gzip`. zlib hands out 64 KiB for each of
// them, and the bodies that were kept within 32 MiB kept 640 MiB beside them.
test('A compressed body that is kept takes no more memory than its bytes', async () => {
  const { bytes, headers } = encodeJson({ list: Array.from({ length: 200 }, (_, at) => `item ${at}`) }, '"tag"');
  const answer = { status: 200, headers, body: { kind: 'bytes', bytes } } as const;
  const [first, again] = [await compressedAnswer(answer, 'gzip'), await compressedAnswer(answer, 'gzip')];
  assert.ok(first.body.kind === 'bytes' && again.body.kind === 'bytes');
  assert.equal(again.body.bytes, first.body.bytes);
  assert.equal(first.body.bytes.buffer.byteLength, first.body.bytes.length);
});

test('An answer is compressed from its least length on, whether it is kept or made for one caller', async () => {
  const frame = JSON.stringify({ text: '' }).length;
  for (const [length, encoding] of [
    [COMPRESSED_ANSWER_BYTES_MIN - 1, undefined],
    [COMPRESSED_ANSWER_BYTES_MIN, 'gzip'],
  ] as const) {
    const json = { text: 'x'.repeat(length - frame) };
    const { bytes, headers } = encodeJson(json, '"tag"');
    assert.equal(bytes.length, length);
    for (const body of [
      { kind: 'bytes', bytes },
      { kind: 'json', json },
    ] as const) {
      const answer = await compressedAnswer({ status: 200, headers, body }, 'gzip');
      assert.equal(answer.headers['content-encoding'], encoding, `${body.kind} of ${length}`);
    }
  }
});
