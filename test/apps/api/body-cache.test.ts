/** The memory that the cache of answers holds. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { encodeJson } from '../../../apps/api/body-cache.ts';

test('an encoded answer shares no memory with others, however small it is', () => {
  const { bytes } = encodeJson({ name: 'Ärger', list: [1, 2, 3] }, '"tag"');
  assert.equal(bytes.toString('utf8'), '{"name":"Ärger","list":[1,2,3]}');
  assert.equal(bytes.buffer.byteLength, bytes.length);
});
