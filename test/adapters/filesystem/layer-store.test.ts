/** Which files the layer store leaves on the disk, and how it reports a full disk. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { createFilesystemLayerStore } from '../../../adapters/filesystem/layer-store.ts';
import { LayerStoreError } from '../../../core/ports/layer-store.ts';
import { layerKey } from '../../../core/repository/layer.ts';
import { eventually } from '../../support/processes.ts';
import { mountSmallDisk } from '../../support/small-disk.ts';

async function* body(size: number): AsyncGenerator<Uint8Array> {
  for (let left = size; left > 0; left -= 65_536) yield new Uint8Array(Math.min(left, 65_536)).fill(7);
}

async function inFolder(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'strata-layers-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

describe('the layer store on the file system', () => {
  test('keeps a layer as a file at its key and no temporary file', () =>
    inFolder(async (directory) => {
      const store = await createFilesystemLayerStore({ directory });
      await store.put(layerKey('a/b/c.tar'), body(10), 10);
      await store.put(layerKey('a/b/c.tar'), body(10), 10);
      // The name under which a layer was written goes right after the answer.
      await eventually('no temporary file', async () => (await readdir(join(directory, '.incoming'))).length === 0);
      await assert.rejects(store.put(layerKey('a/b/d.tar'), body(10), 11));
      assert.deepEqual(await readdir(join(directory, '.incoming')), []);
      assert.deepEqual(await readdir(join(directory, 'a/b')), ['c.tar']);
    }));

  test('lets no other user of the machine read a layer or list a folder', () =>
    inFolder(async (directory) => {
      const layers = join(directory, 'layers');
      const store = await createFilesystemLayerStore({ directory: layers });
      await store.put(layerKey('a/b/c.tar'), body(10), 10);
      for (const path of ['', '.incoming', 'a', 'a/b', 'a/b/c.tar']) {
        assert.equal((await stat(join(layers, path))).mode & 0o007, 0, path);
      }
    }));

  test('keeps others out of a folder that an earlier version made, and lets its group in as before', () =>
    inFolder(async (directory) => {
      for (const [before, after] of [
        [0o755, 0o750],
        [0o2775, 0o2770],
        [0o700, 0o700],
      ] as const) {
        await chmod(directory, before);
        await createFilesystemLayerStore({ directory });
        assert.equal((await stat(directory)).mode & 0o7777, after);
      }
    }));

  test('removes half-written files of dead processes, and none younger than a day', () =>
    inFolder(async (directory) => {
      const incoming = join(directory, '.incoming');
      await mkdir(incoming);
      for (const [name, hours] of [
        ['old', 25],
        ['young', 23],
      ] as const) {
        await writeFile(join(incoming, name), 'half');
        const at = new Date(Date.now() - hours * 3_600_000);
        await utimes(join(incoming, name), at, at);
      }
      await createFilesystemLayerStore({ directory });
      assert.deepEqual(await readdir(incoming), ['young']);
    }));

  test('puts a layer again after its folder was removed', () =>
    inFolder(async (directory) => {
      const store = await createFilesystemLayerStore({ directory });
      await store.put(layerKey('a/b/c.tar'), body(10), 10);
      await rm(join(directory, 'a'), { recursive: true });
      assert.equal(await store.put(layerKey('a/b/c.tar'), body(10), 10), 'stored');
    }));

  test('reports a full disk, leaves no file behind, and works again when there is room', (context) => {
    const disk = mountSmallDisk(1_000_000);
    if ('skip' in disk) return context.skip(disk.skip);
    return (async () => {
      try {
        const store = await createFilesystemLayerStore({ directory: disk.path });
        const key = layerKey('repositories/x.tar');
        const full = (error: unknown) => error instanceof LayerStoreError && error.code === 'layer-store-full';
        await assert.rejects(store.put(key, body(2_000_000), 2_000_000), full);
        assert.deepEqual(await readdir(join(disk.path, '.incoming')), []);
        assert.equal(await store.head(key), null);
        assert.equal(await store.put(key, body(500_000), 500_000), 'stored');
      } finally {
        disk.remove();
      }
    })();
  });
});
