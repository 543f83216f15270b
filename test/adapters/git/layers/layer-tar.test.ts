/** A layer's tar: any tar can read it, its bytes are always the same, and it is parsed from chunks of any size. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { LayerFormatError, layerContent, readTar } from '../../../../adapters/git/layers/layer-tar.ts';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import type { LayerContent, Quarantine } from '../../../../core/ports/object-database.ts';
import { runGit, temporaryFolder, testRepository } from '../../../support/git.ts';
import { once, testDatabase } from '../../../support/object-database.ts';

const folder = temporaryFolder('tar');
afterAll(() => folder.remove());

describe('the tar of a layer', () => {
  const sizes = { small: 1_000, large: 3_000_001 };
  beforeAll(async () => {
    for (const [name, size] of Object.entries(sizes)) {
      await writeFile(join(folder.path, `${name}.pack`), randomBytes(size));
      await writeFile(join(folder.path, `${name}.idx`), randomBytes(512));
    }
  });
  const pages = createFilePages({ memoryBytesMax: 2 ** 20 });
  const sourceOf = async (name: string) => ({
    pack: 'a'.repeat(40),
    packFile: await pages.open(join(folder.path, `${name}.pack`)),
    idxFile: await pages.open(join(folder.path, `${name}.idx`)),
    updates: 'x refs/heads/main\n',
    description: '{"format":1}\n',
  });
  const contentOf = async (name: string) => layerContent(pages, await sourceOf(name));
  const bytesOf = async (content: LayerContent) => Buffer.concat(await Array.fromAsync(content.body()));

  test('has the size and SHA-256 that it announces, every time it is read', async () => {
    for (const name of Object.keys(sizes)) {
      const content = await contentOf(name);
      for (const bytes of [await bytesOf(content), await bytesOf(content), await bytesOf(await contentOf(name))]) {
        assert.equal(bytes.length, content.sizeBytes);
        assert.equal(createHash('sha256').update(bytes).digest('hex'), content.sha256());
      }
    }
  });

  test('has the same bytes whether the pack is in memory or on the disk, with few updates and with many', async () => {
    const [pack, idx] = await Promise.all(['pack', 'idx'].map((name) => readFile(join(folder.path, `small.${name}`))));
    if (pack === undefined || idx === undefined) return assert.fail('not written');
    const held = {
      packFile: pages.openHeld('', pack, () => pack),
      idxFile: pages.openHeld('', idx, () => idx),
    };
    for (const updates of [1, 60_000]) {
      const source = { ...(await sourceOf('small')), updates: 'x refs/heads/main\n'.repeat(updates) };
      const inMemory = await layerContent(pages, { ...source, ...held });
      assert.equal(inMemory.sizeBytes > 2 ** 20, updates > 1);
      assert.deepEqual(await bytesOf(inMemory), await bytesOf(await layerContent(pages, source)));
    }
  });

  test('is parsed from chunks of any size', async () => {
    for (const name of Object.keys(sizes)) {
      const bytes = await bytesOf(await contentOf(name));
      for (const size of name === 'small' ? [1, 511, 513, 10_000] : [65_536]) {
        const entries: { name: string; length: number }[] = [];
        for await (const part of readTar(once(bytes, size))) {
          if ('entry' in part) entries.push({ name: part.entry, length: 0 });
          else (entries.at(-1) ?? assert.fail()).length += part.bytes.length;
        }
        const base = `objects/pack/pack-${'a'.repeat(40)}`;
        const [pack, idx] = [`${base}.pack`, `${base}.idx`];
        const expected = [
          [pack, sizes[name as 'small']],
          [idx, 512],
          ['updates', 18],
          ['layer.json', 13],
        ];
        assert.deepEqual(
          entries.map((entry) => [entry.name, entry.length]),
          expected,
        );
      }
    }
  });

  test('is refused when an entry has a size below zero', async () => {
    const [head, end] = [(await bytesOf(await contentOf('small'))).subarray(0, 512), Buffer.alloc(1_024)];
    head.write('-0000000001', 124, 'latin1');
    await assert.rejects(Array.fromAsync(readTar(once(Buffer.concat([head, end])))), /A tar entry has no size/);
  });

  test('is refused when it is cut short, or is no tar', async () => {
    const bytes = await bytesOf(await contentOf('small'));
    for (const broken of [bytes.subarray(0, 1_000), bytes.subarray(0, -1_024), Buffer.alloc(0), randomBytes(2_000)]) {
      await assert.rejects(Array.fromAsync(readTar(once(broken))), LayerFormatError);
    }
  });
});

describe('the layers of a repository', () => {
  test('make a bare repository that any git can clone, when they are unpacked into one folder', async () => {
    const repository = testRepository(join(folder.path, 'repository'));
    const database = await testDatabase();
    let objects = database.newObjects();
    let before: ObjectId | null = null;
    const bare = join(folder.path, 'bare.git');
    await mkdir(join(bare, 'refs'), { recursive: true });
    for (let index = 0; index < 3; index += 1) {
      const text = Array.from({ length: 300 }, (_, line) => `line ${line * (index + 1)}`).join('\n');
      const commit = repository.commit({ text: index === 2 ? `${text}\nmore` : text });
      const pack = repository.pack(before === null ? [commit] : [commit, `^${before}`], { thin: true });
      const received = await database.receive(objects, pack);
      if ('refused' in received) assert.fail(received.detail);
      untar(bare, await collect(received, commit));
      objects = await database.commit(objects, received);
      before = commit;
    }
    await writeFile(join(bare, 'HEAD'), 'ref: refs/heads/main\n');
    runGit(['update-ref', 'refs/heads/main', before ?? ''], { env: { GIT_DIR: bare } });
    assert.equal(runGit(['fsck', '--strict', '--full'], { env: { GIT_DIR: bare } }).toString(), '');
    runGit(['clone', '-q', '--no-local', bare, join(folder.path, 'clone')]);
    await database.close();
  });

  async function collect(received: Quarantine, commit: ObjectId): Promise<Buffer> {
    const content = await received.layer([`${commit} refs/heads/main`], {
      format: 1,
      layer_id: 'x',
      number: 3,
      none: null,
    });
    const bytes = Buffer.concat(await Array.fromAsync(content.body()));
    assert.equal(tar(['-xO', 'layer.json'], bytes).toString(), '{"format":1,"layer_id":"x","none":null,"number":3}\n');
    assert.equal(tar(['-xO', 'updates'], bytes).toString(), `${commit} refs/heads/main\n`);
    const listed = tar(['-tv', '--utc', '--full-time', '--numeric-owner'], bytes).toString().trim().split('\n');
    const names = listed.map((line) => {
      assert.match(line, /^-rw-r--r-- 0\/0 +\d+ 1970-01-01 00:00:00 /);
      return line.split(' ').at(-1);
    });
    const base = `objects/pack/pack-${received.pack}`;
    assert.deepEqual(names, [`${base}.pack`, `${base}.idx`, 'updates', 'layer.json']);
    return bytes;
  }

  function untar(target: string, bytes: Buffer): void {
    tar(['-x', '-C', target, '--wildcards', 'objects/*'], bytes);
  }

  function tar(args: readonly string[], input: Buffer): Buffer {
    return execFileSync('tar', ['-f', '-', ...args], { input, maxBuffer: 2 ** 26 });
  }
});
