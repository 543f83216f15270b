/** The memory that the cache of answers holds. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createBodyCache, encodeJson } from '../../../apps/api/body-cache.ts';

test('an encoded answer shares no memory with others, however small it is', () => {
  const { bytes } = encodeJson({ name: 'Ärger', list: [1, 2, 3] }, '"tag"');
  assert.equal(bytes.toString('utf8'), '{"name":"Ärger","list":[1,2,3]}');
  assert.equal(bytes.buffer.byteLength, bytes.length);
});

test('a body that was cut from a larger buffer keeps nothing of it in memory, and counts what it takes', async () => {
  const bodies = createBodyCache();
  const cut = () => ({ etag: '"tag"', headers: {}, bytes: Buffer.allocUnsafeSlow(65_536).fill(7).subarray(10, 110) });
  const kept = bodies.keep('first', cut());
  const made = await bodies.getOrMake('second', async () => ({ key: 'second', body: cut() }));
  for (const [key, answered] of [
    ['first', kept],
    ['second', made],
  ] as const) {
    const body = bodies.get(key);
    assert.equal(body, answered, 'what is sent is what is kept');
    assert.deepEqual([body?.bytes.length, body?.bytes.buffer.byteLength], [100, 100]);
    assert.deepEqual(body?.bytes, Buffer.alloc(100, 7));
  }
  assert.ok(bodies.memoryBytes() >= 200 && bodies.memoryBytes() < 2_000);
});

test('a body of JSON counts twice, since its compressed form is kept with it', () => {
  const [plain, json] = [createBodyCache(), createBodyCache()];
  const body = encodeJson({ text: 'a'.repeat(10_000) }, '"tag"');
  json.keep('key', body);
  plain.keep('key', { ...body, headers: {} });
  assert.equal(json.memoryBytes() - plain.memoryBytes(), body.bytes.length);
});
