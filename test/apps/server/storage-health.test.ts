/** When a disk counts as degraded. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createDiskSpace, DISK_FREE_BYTES_MIN } from '../../../apps/server/storage-health.ts';

describe('A disk', () => {
  test('is degraded while less than the least room is free', async () => {
    let free = DISK_FREE_BYTES_MIN;
    const disk = createDiskSpace('/data', async () => free);
    await disk.look();
    assert.deepEqual([disk.health.isDegraded(), disk.freeBytes()], [false, free]);
    free -= 1;
    await disk.look();
    assert.deepEqual([disk.health.isDegraded(), disk.freeBytes()], [true, free]);
    free += 1;
    await disk.look();
    assert.equal(disk.health.isDegraded(), false);
  });

  test('that cannot be read is degraded, and one that nobody has looked at is not', async () => {
    const disk = createDiskSpace('/data', async () => Promise.reject(new Error('ENOENT')));
    assert.equal(disk.health.isDegraded(), false);
    await disk.look();
    assert.deepEqual([disk.health.isDegraded(), disk.freeBytes()], [true, Number.NaN]);
  });

  test('that does not answer is asked once', async () => {
    let calls = 0;
    let answer: (bytes: number) => void = () => undefined;
    const disk = createDiskSpace('/data', () => {
      calls += 1;
      return new Promise((resolve) => (answer = resolve));
    });
    const looks = [disk.look(), disk.look()];
    assert.equal(calls, 1);
    answer(7);
    await Promise.all(looks);
    assert.equal(disk.freeBytes(), 7);
  });

  test('of a real folder has free bytes', async () => {
    const disk = createDiskSpace(import.meta.dirname);
    await disk.look();
    assert.ok(disk.freeBytes() > 0);
  });
});
