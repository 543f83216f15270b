/** Packs and their indexes, read in process and compared with what git reads. */
import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { applyDelta, applyDeltaInTurns } from '../../../../adapters/git/packs/pack-delta.ts';
import {
  createObjectCache,
  type ObjectCache,
  openPackFile,
  type PackFile,
  type PackMemory,
  type SizeBounds,
} from '../../../../adapters/git/packs/pack-file.ts';
import { hasAllOf, idsStartingWith, openPackIndex, type PackIndex } from '../../../../adapters/git/packs/pack-index.ts';
import { createReadTurns } from '../../../../adapters/git/packs/read-turns.ts';
import { runGit, temporaryFolder, testRepository } from '../../../support/git.ts';
import { deltaSize, rawEntry, rawId, rawPack, repeatingDelta } from '../../../support/raw-pack.ts';

/** The same bound for every type. */
function upTo(bytes: number): SizeBounds {
  return { commit: bytes, tree: bytes, blob: bytes, tag: bytes };
}

describe('a pack read in process', () => {
  const folder = temporaryFolder('pack');
  let objects: readonly { readonly id: string; readonly type: string; readonly size: number }[];
  let opened: Opened;
  const repository = testRepository(join(folder.path, 'repository'));
  beforeAll(async () => {
    let text = '';
    for (let index = 0; index < 25; index += 1) {
      text += `line ${index} ${'x'.repeat(index * 7)}\n`;
      repository.commit({ 'notes.txt': text, [`many/${index % 7}/${index}.txt`]: `${index}` });
    }
    repository.commit({ 'large.bin': Buffer.alloc(3_000_000, 'abc') });
    repository.git(['tag', '-a', '-m', 'One', 'one', 'HEAD']);
    repository.git(['tag', '-a', '-m', 'Two', 'two', 'one']);
    opened = await open(folder.path, 'normal', repository.pack(['--all']));
    const listed = repository.line(['cat-file', '--batch-all-objects', '--batch-check']);
    objects = listed.split('\n').map((line) => {
      const [id = '', type = '', size = ''] = line.split(' ');
      return { id, type, size: Number(size) };
    });
  });
  afterAll(() => folder.remove());

  test('has every object, with its type and size', async () => {
    assert.equal(opened.index.objectCount, objects.length);
    for (const { id, type, size } of objects) {
      const offset = await opened.index.find(Buffer.from(id, 'hex'));
      assert.ok(offset !== null, id);
      const info = await opened.pack.info(offset);
      assert.deepEqual([info?.type, info?.sizeBytes], [type, size]);
      assert.deepEqual(await opened.pack.type(offset), { type, deltas: info?.deltas });
    }
  });

  test('finds the objects whose ids begin with digits, in order and up to a number', async () => {
    const sorted = objects.map(({ id }) => id).sort();
    for (const digits of ['', ...sorted.map((id) => id.slice(0, 2)), ...sorted, '0', 'f', 'ff', '0'.repeat(40)]) {
      const expected = sorted.filter((id) => id.startsWith(digits));
      assert.deepEqual(await idsStartingWith(opened.index, digits, sorted.length), expected, digits);
      assert.deepEqual(await idsStartingWith(opened.index, digits, 1), expected.slice(0, 1), digits);
    }
  });

  test('keeps no memory beyond the tables of its index', async () => {
    const { buffer } = await opened.index.ids(0, 1);
    assert.equal(buffer.byteLength, opened.index.residentBytes);
  });

  test('returns every object byte for byte, with its deltas resolved', async () => {
    const all = repository.git(['cat-file', '--batch'], { input: objects.map(({ id }) => `${id}\n`).join('') });
    let at = 0;
    for (const { id, type, size } of objects) {
      at += `${id} ${type} ${size}\n`.length;
      const offset = await opened.index.find(Buffer.from(id, 'hex'));
      const read = await opened.pack.read(offset ?? 0, upTo(4_000_000));
      assert.equal(read?.type, type);
      assert.ok(read?.bytes.equals(all.subarray(at, at + size)), id);
      at += size + 1;
    }
  });

  test('keeps no more bytes in memory than it counts', async () => {
    for (const { id } of objects)
      await opened.pack.read((await opened.index.find(Buffer.from(id, 'hex'))) ?? 0, upTo(4_000_000));
    const kept = [...opened.cache.keys()].flatMap((key) => opened.cache.get(key) ?? []);
    const cached = kept.map(({ bytes }) => [bytes.buffer.byteLength, bytes.length]);
    assert.ok(cached.length > 10);
    for (const [memoryBytes, countedBytes] of cached) assert.equal(memoryBytes, countedBytes);
  });

  test('does not find an object that it does not have', async () => {
    for (const id of ['0'.repeat(40), 'f'.repeat(40), `${objects[5]?.id.slice(0, 36)}0000`]) {
      if (objects.some((object) => object.id === id)) continue;
      assert.equal(await opened.index.find(Buffer.from(id, 'hex')), null);
    }
  });

  test('returns null for an object larger than the bound', async () => {
    const large = objects.find(({ size }) => size === 3_000_000);
    const offset = (await opened.index.find(Buffer.from(large?.id ?? '', 'hex'))) ?? 0;
    assert.ok((await opened.pack.read(offset, upTo(2_999_999))) === null);
    assert.equal((await opened.pack.read(offset, upTo(3_000_000)))?.bytes.length, 3_000_000);
  });
});

describe('a large index, read by pages', () => {
  test('finds each of its 6,000 objects and no other', async () => {
    const folder = temporaryFolder('pack');
    try {
      const blobs = Array.from({ length: 6_000 }, (_, index) => Buffer.from(`blob number ${index}`));
      const pack = rawPack(blobs.map((bytes) => rawEntry({ type: 'blob', bytes })));
      const { index, pack: file } = await open(folder.path, 'large', pack);
      for (const bytes of blobs) {
        const offset = await index.find(Buffer.from(rawId('blob', bytes), 'hex'));
        assert.deepEqual((await file.read(offset ?? 0, upTo(100)))?.bytes, bytes);
      }
      for (let number = 6_000; number < 7_000; number += 1) {
        const id = rawId('blob', Buffer.from(`blob number ${number}`));
        assert.equal(await index.find(Buffer.from(id, 'hex')), null);
      }
    } finally {
      folder.remove();
    }
  });

  test('finds objects immediately where its pages are in memory, and the same where only one page is', async () => {
    const folder = temporaryFolder('pack');
    try {
      const blobs = Array.from({ length: 6_000 }, (_, index) => Buffer.from(`blob number ${index}`));
      await open(folder.path, 'large', rawPack(blobs.map((bytes) => rawEntry({ type: 'blob', bytes }))));
      const opened = async (memoryBytesMax: number) => {
        const pages = createFilePages({ memoryBytesMax });
        return openPackIndex(pages, await pages.open(join(folder.path, 'large.idx')));
      };
      const [roomy, tight] = [await opened(1_000_000), await opened(17_000)];
      for (const bytes of blobs) {
        const id = Buffer.from(rawId('blob', bytes), 'hex');
        const offset = await tight.find(id);
        assert.ok(offset !== null);
        assert.equal(await roomy.find(id), offset);
        assert.equal(roomy.find(id), offset);
      }
    } finally {
      folder.remove();
    }
  });

  test('follows offsets beyond 2 GiB, as git writes them in a second table', async () => {
    const folder = temporaryFolder('pack');
    try {
      const blobs = Array.from({ length: 9 }, (_, index) => Buffer.from(`blob ${index}`));
      const path = join(folder.path, 'p.pack');
      writeFileSync(path, rawPack(blobs.map((bytes) => rawEntry({ type: 'blob', bytes }))));
      // git writes every offset above 0x10 into the table of 64-bit offsets.
      runGit(['index-pack', '--index-version=2,0x10', '-o', join(folder.path, 'p.idx'), path]);
      const memory = createMemory(1_000);
      const { pages } = memory;
      const index = await openPackIndex(pages, await pages.open(join(folder.path, 'p.idx')));
      const pack = openPackFile(memory, await pages.open(path), index);
      for (const bytes of blobs) {
        const offset = await index.find(Buffer.from(rawId('blob', bytes), 'hex'));
        assert.deepEqual((await pack.read(offset ?? 0, upTo(100)))?.bytes, bytes);
      }
    } finally {
      folder.remove();
    }
  });
});

describe('an index compared with another', () => {
  const folder = temporaryFolder('pack');
  afterAll(() => folder.remove());
  const indexOf = async (name: string, numbers: readonly number[]): Promise<PackIndex> => {
    const blobs = numbers.map((number) => rawEntry({ type: 'blob', bytes: Buffer.from(`blob number ${number}`) }));
    return (await open(folder.path, name, rawPack(blobs))).index;
  };
  const upToNumber = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

  test('has all objects of it, however large both are, and lacks one that it does not have', async () => {
    const large = await indexOf('whole', upToNumber(9_000));
    const odd = upToNumber(9_000).filter((number) => number % 2 === 1);
    assert.equal(await hasAllOf(large, await indexOf('odd', odd)), true);
    assert.equal(await hasAllOf(large, await indexOf('few', [3, 8_999])), true);
    assert.equal(await hasAllOf(large, large), true);
    assert.equal(await hasAllOf(large, await indexOf('stranger', [3, 9_000])), false);
    assert.equal(await hasAllOf(large, await indexOf('large-stranger', [...odd, 9_000])), false);
    assert.equal(await hasAllOf(await indexOf('small', [1]), large), false);
  });
});

describe('a delta whose deflated bytes begin with a long table of codes', () => {
  test('has the size of the object that it makes', async () => {
    const folder = temporaryFolder('pack');
    try {
      const base = Buffer.from('base');
      // Every byte value, unevenly often: the table of codes takes some hundred bytes before the first size.
      const text = Buffer.from(Array.from({ length: 6_000 }, (_, index) => (index * index * 31 + (index % 97)) & 0xff));
      const inserts: Buffer[] = [deltaSize(base.length), deltaSize(text.length)];
      for (let at = 0; at < text.length; at += 100) inserts.push(Buffer.from([100]), text.subarray(at, at + 100));
      const delta = rawEntry({ type: 'ref-delta', base: rawId('blob', base), bytes: Buffer.concat(inserts) });
      const { index, pack } = await open(
        folder.path,
        'table',
        rawPack([rawEntry({ type: 'blob', bytes: base }), delta]),
      );
      const offset = (await index.find(Buffer.from(rawId('blob', text), 'hex'))) ?? 0;
      assert.deepEqual(await pack.info(offset), { type: 'blob', sizeBytes: 6_000, deltas: 1 });
    } finally {
      folder.remove();
    }
  });
});

describe('reading a hostile pack', () => {
  test('leaves a chain of deltas to git that grows a thousandfold a step, within bounds', async () => {
    const folder = temporaryFolder('pack');
    try {
      const base = Buffer.alloc(1_000, 'a');
      const first = rawEntry({ type: 'blob', bytes: base });
      const second = rawEntry({ type: 'ref-delta', base: rawId('blob', base), bytes: repeatingDelta(1_000, 1_000) });
      const { index, pack } = await open(folder.path, 'bomb', rawPack([first, second]));
      const large = Buffer.alloc(1_000_000, 'a');
      const offset = (await index.find(Buffer.from(rawId('blob', large), 'hex'))) ?? 0;
      assert.deepEqual(await pack.info(offset), { type: 'blob', sizeBytes: 1_000_000, deltas: 1 });
      assert.ok((await pack.read(offset, upTo(999_999))) === null);
      assert.ok((await pack.read(offset, upTo(1_000_000)))?.bytes.equals(large));
    } finally {
      folder.remove();
    }
  });

  test('asks before it makes an object of more than a MiB, whole or from a delta, and not before smaller ones', async () => {
    const folder = temporaryFolder('pack');
    try {
      const MIB = 1024 * 1024;
      const [small, large] = [Buffer.alloc(MIB, 'a'), Buffer.alloc(MIB + 1, 'b')];
      const made = Buffer.alloc(2 * MIB, 'a');
      const delta = rawEntry({ type: 'ref-delta', base: rawId('blob', small), bytes: repeatingDelta(MIB, 2) });
      const entries = [rawEntry({ type: 'blob', bytes: small }), rawEntry({ type: 'blob', bytes: large }), delta];
      const { index, pack } = await open(folder.path, 'large', rawPack(entries));
      const askedFor = async (bytes: Buffer): Promise<number> => {
        let asked = 0;
        const offset = (await index.find(Buffer.from(rawId('blob', bytes), 'hex'))) ?? 0;
        const read = await pack.read(offset, upTo(4 * MIB), async () => void (asked += 1));
        assert.ok(read?.bytes.equals(bytes));
        return asked;
      };
      assert.deepEqual([await askedFor(small), await askedFor(large), await askedFor(made)], [0, 1, 1]);
    } finally {
      folder.remove();
    }
  });

  test('applies a delta of many instructions in turns', async () => {
    const base = Buffer.from('ab');
    const COPIES = 100_000;
    const copy = Buffer.from([0x91, 1, 1]);
    const parts = [deltaSize(2), deltaSize(COPIES), ...Array<Buffer>(COPIES).fill(copy)];
    const delta = Buffer.concat(parts);
    let turns = 0;
    const made = await applyDeltaInTurns(base, delta, async () => void (turns += 1));
    assert.ok(made.equals(Buffer.alloc(COPIES, 'b')));
    assert.ok(made.equals(applyDelta(base, delta)));
    assert.ok(turns >= 4, `${turns} turns`);
    await assert.rejects(
      applyDeltaInTurns(base, delta.subarray(0, -3), () => null),
      /does not fill/,
    );
  });

  test('leaves a long chain of deltas to git, and finds what it makes up to the length that git writes', async () => {
    const folder = temporaryFolder('pack');
    try {
      const entries = [rawEntry({ type: 'blob', bytes: Buffer.from('v0000') })];
      for (let step = 1; step < 5_000; step += 1) {
        const text = Buffer.from(`v${String(step).padStart(4, '0')}`);
        const bytes = Buffer.concat([deltaSize(5), deltaSize(5), Buffer.from([5]), text]);
        entries.push(rawEntry({ type: 'ofs-delta', distance: entries.at(-1)?.length ?? 0, bytes }));
      }
      const { index, pack } = await open(folder.path, 'chain', rawPack(entries));
      const deepest = (await index.find(Buffer.from(rawId('blob', Buffer.from('v4999')), 'hex'))) ?? 0;
      assert.equal(await pack.info(deepest), null);
      assert.ok((await pack.read(deepest, upTo(1_000_000))) === null);
      const shallower = (await index.find(Buffer.from(rawId('blob', Buffer.from('v4000')), 'hex'))) ?? 0;
      assert.deepEqual(await pack.info(shallower), { type: 'blob', sizeBytes: 5, deltas: 4_000 });
      assert.ok((await pack.read(shallower, upTo(1_000_000))) === null);
      const old = (await index.find(Buffer.from(rawId('blob', Buffer.from('v0250')), 'hex'))) ?? 0;
      assert.equal((await pack.read(old, upTo(1_000_000)))?.bytes.toString(), 'v0250');
    } finally {
      folder.remove();
    }
  });

  test('lets others have the event loop within a chain of deltas, each too small to be applied in turns', async () => {
    const folder = temporaryFolder('pack');
    try {
      const { pack, offsets } = await openCopyingChain(folder.path, 8);
      const deepest = offsets.at(-1) ?? assert.fail();
      await pack.read(deepest, upTo(1_000_000));
      // All pages are in memory now, so nothing but the work of the chain itself can let others have the event loop.
      const { result, turns } = await turnsDuring(() => pack.read(deepest, upTo(1_000_000)));
      assert.equal(result?.bytes.length, CHAIN_COPIES + 2);
      assert.ok(turns >= 4, `${turns} turns`);
    } finally {
      folder.remove();
    }
  });

  test('lets others have the event loop between many small reads, whoever makes them', async () => {
    const folder = temporaryFolder('pack');
    try {
      const { pack, offsets } = await openCopyingChain(folder.path, 1);
      const readAll = async () => {
        for (let read = 0; read < 8; read += 1) await pack.read(offsets[1] ?? assert.fail(), upTo(1_000_000));
      };
      await readAll();
      const { turns } = await turnsDuring(readAll);
      assert.ok(turns >= 4, `${turns} turns`);
    } finally {
      folder.remove();
    }
  });

  test('leaves a chain of 129 deltas of 126 KB, which deflate to 25 KB, to git', async () => {
    const folder = temporaryFolder('pack');
    try {
      const { pack, bytes, offsets } = await openCopyingChain(folder.path, 129);
      assert.ok(bytes.length < 64 * 1024, `${bytes.length} bytes`);
      assert.ok((await pack.read(offsets.at(-1) ?? assert.fail(), upTo(16 * 1024 * 1024))) === null);
    } finally {
      folder.remove();
    }
  });

  test('keeps the base of a costly delta, so that a thousand objects of one chain cost it once', async () => {
    const folder = temporaryFolder('pack');
    try {
      const { pack, cache, offsets } = await openCopyingChain(folder.path, 8, 4_000_000);
      await pack.read(offsets[7] ?? assert.fail(), upTo(1_000_000));
      assert.ok(cache.has(`${pack.file.number}:${offsets[6]}`));
    } finally {
      folder.remove();
    }
  });

  test('refuses an index that is cut short or of another format when it is opened', async () => {
    const folder = temporaryFolder('pack');
    try {
      const pages = createFilePages({ memoryBytesMax: 1_000_000 });
      const pack = join(folder.path, 'p.pack');
      const idx = join(folder.path, 'p.idx');
      writeFileSync(pack, rawPack([rawEntry({ type: 'blob', bytes: Buffer.from('a') })]));
      runGit(['index-pack', '-o', idx, pack]);
      const { size } = statSync(idx);
      for (const length of [0, 100, 1_032, size - 1]) {
        const cut = join(folder.path, `${length}.idx`);
        writeFileSync(cut, readFileSync(idx).subarray(0, length));
        await assert.rejects(openPackIndex(pages, pages.openFresh(cut)), /no pack index|wrong for/);
      }
      runGit(['index-pack', '--index-version=1', '-o', join(folder.path, 'old.idx'), pack]);
      await assert.rejects(
        openPackIndex(pages, await pages.open(join(folder.path, 'old.idx'))),
        /no pack index of version 2/,
      );
    } finally {
      folder.remove();
    }
  });
});

/** The instructions of a delta of 126 KB, each of which copies one byte. */
const CHAIN_COPIES = 63_000;

interface OpenedChain extends Opened {
  readonly bytes: Buffer;
  /** The offset of the base, then that of each delta. */
  readonly offsets: readonly number[];
}

/** A chain of deltas on one blob, each of 63,000 instructions. */
async function openCopyingChain(folder: string, deltas: number, cacheBytesMax = 1_000): Promise<OpenedChain> {
  const entries = [rawEntry({ type: 'blob', bytes: Buffer.alloc(CHAIN_COPIES + 2) })];
  const offsets = [12];
  for (let step = 1; step <= deltas; step += 1) {
    const bytes = Buffer.concat([
      deltaSize(CHAIN_COPIES + 2),
      deltaSize(CHAIN_COPIES + 2),
      Buffer.from([2, step >> 8, step & 0xff]),
      Buffer.alloc(2 * CHAIN_COPIES, Buffer.from([0x90, 1])),
    ]);
    offsets.push((offsets.at(-1) ?? 0) + (entries.at(-1)?.length ?? 0));
    entries.push(rawEntry({ type: 'ofs-delta', distance: entries.at(-1)?.length ?? 0, bytes }));
  }
  const bytes = rawPack(entries);
  return { ...(await open(folder, 'copying', bytes, cacheBytesMax)), bytes, offsets };
}

/** Counts how often others have the event loop until the work is done. */
async function turnsDuring<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly turns: number }> {
  let isDone = false;
  let turns = 0;
  const counting = (async () => {
    for (; !isDone; turns += 1) await nextTurn();
  })();
  const result = await work();
  isDone = true;
  const counted = turns;
  await counting;
  return { result, turns: counted };
}

interface Opened {
  readonly cache: ObjectCache;
  readonly index: PackIndex;
  readonly pack: PackFile;
}

async function open(folder: string, name: string, bytes: Buffer, cacheBytesMax = 1_000_000): Promise<Opened> {
  const path = join(folder, `${name}.pack`);
  writeFileSync(path, bytes);
  runGit(['index-pack', '-o', join(folder, `${name}.idx`), path]);
  const memory = createMemory(cacheBytesMax);
  const { pages, cache } = memory;
  const index = await openPackIndex(pages, await pages.open(join(folder, `${name}.idx`)));
  return { index, cache, pack: openPackFile(memory, await pages.open(path), index) };
}

function createMemory(cacheBytesMax: number): PackMemory {
  const pages = createFilePages({ memoryBytesMax: 1_000_000 });
  return { pages, cache: createObjectCache(cacheBytesMax), turns: createReadTurns(nextTurn) };
}
