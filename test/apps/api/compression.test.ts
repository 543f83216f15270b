/** The memory of compressed answers that are kept beside their bodies. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { encodeJson } from '../../../apps/api/body-cache.ts';
import { compressedAnswer } from '../../../apps/api/http/compression.ts';

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
