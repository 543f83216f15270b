/** The head of an object in a pack. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { entryHeader, SIZE_BYTES_MAX } from '../../../../adapters/git/packs/entry-header.ts';

const BLOB = 3 << 4;
const MORE = 0x80;

test('The size of an object takes at most as many bytes as all of git reads, with or without zeros before it', () => {
  const sized = (length: number): Buffer => Buffer.from([BLOB | MORE | 1, ...Array<number>(length - 2).fill(MORE), 0]);
  assert.deepEqual(entryHeader(sized(SIZE_BYTES_MAX)), {
    ...{ type: 'blob', base: null, sizeBytes: 1, length: SIZE_BYTES_MAX },
  });
  assert.equal(entryHeader(sized(SIZE_BYTES_MAX + 1)), null);
});
