/** Files that are read by pages. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { temporaryFolder } from '../../../support/git.ts';

describe('pages of files', () => {
  const folder = temporaryFolder('pages');
  afterAll(() => folder.remove());

  test('return exactly the requested bytes, from the disk and from memory, cut where the file ends', async () => {
    const bytes = randomBytes(100_000);
    const path = join(folder.path, 'file');
    await writeFile(path, bytes);
    for (const memoryBytesMax of [1_000_000, 20_000]) {
      const pages = createFilePages({ memoryBytesMax });
      for (const file of [await pages.open(path), pages.openFresh(path), pages.openHeld('', bytes, () => bytes)]) {
        for (const start of [0, 1, 16_383, 16_384, 50_000, 99_999, 100_000, 200_000]) {
          for (const length of [0, 1, 20, 16_384, 16_385, 100_000]) {
            const expected = bytes.subarray(start, start + length);
            assert.deepEqual(await pages.read(file, start, length), expected, `${start} ${length}`);
            const peeked = pages.peek(file, start, length);
            if (peeked !== null) assert.deepEqual(peeked, expected);
          }
        }
      }
    }
  });

  test('of a small file that was just written are in memory immediately, even if it is moved then', async () => {
    const path = join(folder.path, 'fresh');
    await writeFile(path, 'fresh bytes');
    const pages = createFilePages({ memoryBytesMax: 1_000_000 });
    const file = pages.openFresh(path);
    await rename(path, `${path}-moved`);
    assert.equal(String(pages.peek(file, 0, 100)), 'fresh bytes');
    await rm(`${path}-moved`);
    assert.equal(String(await pages.read(file, 6, 5)), 'bytes');
  });

  test('of a file that is in memory only are read from there, and from the disk once it is written', async () => {
    const path = join(folder.path, 'not-there-yet');
    const pages = createFilePages({ memoryBytesMax: 1_000_000 });
    const bytes = randomBytes(40_000);
    let held: Buffer | null = bytes;
    const file = pages.openHeld(path, bytes, () => held);
    assert.equal(file.sizeBytes, 40_000);
    assert.deepEqual(await pages.read(file, 16_000, 1_000), bytes.subarray(16_000, 17_000));
    assert.deepEqual(pages.page(file, 16_384), bytes.subarray(16_384, 32_768));
    assert.equal(pages.memoryBytes(), 0);
    held = null;
    assert.equal(pages.peek(file, 0, 1), null);
    await assert.rejects(pages.read(file, 0, 1), /ENOENT/);
    await writeFile(path, bytes);
    assert.deepEqual(await pages.read(file, 16_000, 1_000), bytes.subarray(16_000, 17_000));
  });

  test('keep no memory except their own bytes', async () => {
    const path = join(folder.path, 'held');
    await writeFile(path, randomBytes(40_000));
    const pages = createFilePages({ memoryBytesMax: 1_000_000 });
    for (const file of [await pages.open(path), pages.openFresh(path)]) {
      await pages.read(file, 0, 40_000);
      for (const [start, held] of [
        [0, 16_384],
        [16_384, 16_384],
        [32_768, 7_232],
      ] as const)
        assert.equal(pages.peek(file, start, 10)?.buffer.byteLength, held);
    }
  });

  test('of two files are never confused, even if one takes the name of the other', async () => {
    const path = join(folder.path, 'name');
    const pages = createFilePages({ memoryBytesMax: 1_000_000 });
    await writeFile(path, 'first');
    const first = await pages.open(path);
    await pages.read(first, 0, 5);
    await rm(path);
    await writeFile(path, 'other');
    assert.equal(String(await pages.read(await pages.open(path), 0, 5)), 'other');
    assert.equal(String(await pages.read(first, 0, 5)), 'first');
  });
});
