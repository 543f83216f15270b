/** Small packs that are checked in process: never what git refuses, and as git would store them. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { type HashObject, loadObjectHash } from '../../../../adapters/git/packs/object-hash.ts';
import { type OpenPack, openPack } from '../../../../adapters/git/packs/object-source.ts';
import { createObjectCache, type PackMemory } from '../../../../adapters/git/packs/pack-file.ts';
import type { PackIndex } from '../../../../adapters/git/packs/pack-index.ts';
import { createReadTurns } from '../../../../adapters/git/packs/read-turns.ts';
import type { IndexedPack } from '../../../../adapters/git/receiving/index-pack.ts';
import { createNearbyObjects } from '../../../../adapters/git/receiving/nearby-objects.ts';
import { indexSmallPack } from '../../../../adapters/git/receiving/small-pack.ts';
import type { ObjectType } from '../../../../core/git/objects.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects } from '../../../../core/ports/object-database.ts';
import { noteFigure } from '../../../support/figures.ts';
import { runGit, type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { thirdOf } from '../../../support/kill-sample.ts';
import { loggingGit } from '../../../support/logging-git.ts';
import { committedEntries, mutatedPack } from '../../../support/mutated-packs.ts';
import { fullyChecked, type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { ODD_PACKS } from '../../../support/odd-packs.ts';
import { deltaSize, rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';

/** More of them are in mutated-packs.long.test.ts. */
/** Packs are made from a thousand seeds behind each of these; a run of CI takes one of them (kill-sample.ts). */
const FIRST_SEEDS = thirdOf(['1', '1001', '2001']).map(Number);
const SEEDS_EACH = 1_000;

const folder = temporaryFolder('small-pack');
let hash: HashObject;
let folders = 0;
/** A repository without objects. */
const bare = join(folder.path, 'bare.git');

beforeAll(() => {
  runGit(['init', '-q', '--bare', bare]);
  hash = loadObjectHash((error) => assert.fail(String(error))) ?? assert.fail('es-git names no objects');
});
afterAll(() => folder.remove());

/** A pack that git indexes. */
async function committedPack(pack: Buffer, more: Partial<PackMemory> = {}): Promise<OpenPack> {
  const path = join(folder.path, `committed-${(folders += 1)}`);
  writeFileSync(`${path}.pack`, pack);
  runGit(['index-pack', `${path}.pack`]);
  const pages = createFilePages({ memoryBytesMax: 2 ** 24 });
  const memory = { pages, cache: createObjectCache(2 ** 20), turns: createReadTurns(nextTurn), ...more };
  return openPack(memory, 'committed', `${path}.pack`, `${path}.idx`);
}

/** Checks a pack in process, as receive-pack.ts does. */
function indexed(bytes: Buffer, committed: OpenPack, hashing: HashObject = hash): Promise<IndexedPack | null> {
  const { signal } = new AbortController();
  const near = createNearbyObjects([committed]);
  return indexSmallPack({ bytes, committed: near, hash: hashing, signal });
}

/** A file, its folder, and commits of it, this many objects in all. */
function historyOf(objects: number): Buffer {
  const file = Buffer.from('Read me\n'.repeat(objects));
  const entry = Buffer.from(rawId('blob', file), 'hex');
  const tree = Buffer.concat([Buffer.from('100644 README.md\0'), entry]);
  const entries = [rawEntry({ type: 'blob', bytes: file }), rawEntry({ type: 'tree', bytes: tree })];
  const people = ['author A <a@b> 1 +0000', 'committer A <a@b> 1 +0000'];
  let parents: readonly string[] = [];
  while (entries.length < objects) {
    const lines = [`tree ${rawId('tree', tree)}`, ...parents, ...people, '', `${entries.length}\n`];
    const bytes = Buffer.from(lines.join('\n'));
    parents = [`parent ${rawId('commit', bytes)}`];
    entries.push(rawEntry({ type: 'commit', bytes }));
  }
  return rawPack(entries);
}

function newFolder(): string {
  const path = join(folder.path, `quarantine-${(folders += 1)}`);
  mkdirSync(join(path, 'pack'), { recursive: true });
  return path;
}

/** Writes a pack that was accepted into a folder, as it is written when git needs it. */
function stored(found: IndexedPack | null): { readonly ours: string; readonly name: string } {
  const { pack: name, held } = found ?? assert.fail('left to git');
  if (held === null) return assert.fail('not in memory');
  const ours = newFolder();
  for (const extension of ['pack', 'idx'] as const) {
    writeFileSync(join(ours, 'pack', `pack-${name}.${extension}`), held[extension]);
  }
  return { ours, name };
}

/** git finds pack and index right, and reads each object by its header, its size and its bytes. */
function assertReadable(quarantine: string, name: string, label: string): void {
  assert.equal(runGit(['index-pack', '--verify', join(quarantine, 'pack', `pack-${name}.pack`)]).toString(), '', label);
  const reading = ['cat-file', '--batch-all-objects', '--unordered', '--buffer', '--batch'];
  const read = runGit(reading, { env: { GIT_DIR: bare, GIT_OBJECT_DIRECTORY: quarantine } });
  for (let at = 0; at < read.length; ) {
    const end = read.indexOf('\n', at);
    const [, id, type, size] =
      /^([0-9a-f]{40}) (commit|tree|blob|tag) (\d+)$/.exec(read.toString('latin1', at, end)) ?? [];
    const bytes = read.subarray(end + 1, end + 1 + Number(size));
    assert.equal(rawId((type ?? 'blob') as ObjectType, bytes), id, `${label}: ${read.toString('latin1', at, end)}`);
    at = end + 1 + bytes.length + 1;
  }
}

describe('A small pack that is checked in process', () => {
  let repository: TestRepository;
  let first: ObjectId;
  let committed: OpenPack;

  beforeAll(async () => {
    repository = testRepository(join(folder.path, 'repository'));
    const text = Array.from({ length: 200 }, (_, line) => `line ${line}\n`).join('');
    first = repository.commit({ 'manual/guide.md': text, 'README.md': 'Read me\n', '.gitattributes': '* text=auto\n' });
    committed = await committedPack(repository.pack([first]));
    repository.commit({ 'manual/guide.md': text.replace('line 7\n', 'line seven\n') });
  });

  test('is stored as git index-pack stores it, byte by byte', async () => {
    const pack = repository.pack(['main', `^${first}`]);
    const theirs = newFolder();
    const { ours, name } = stored(await indexed(pack, committed));
    repository.git(['-c', 'pack.writeReverseIndex=true', 'index-pack', '--stdin'], {
      input: pack,
      env: { GIT_OBJECT_DIRECTORY: theirs, GIT_ALTERNATE_OBJECT_DIRECTORIES: join(repository.path, '.git/objects') },
    });
    for (const extension of ['pack', 'idx']) {
      const file = `pack/pack-${name}.${extension}`;
      assert.ok(readFileSync(join(ours, file)).equals(readFileSync(join(theirs, file))), extension);
    }
  });

  test('is completed with the objects that its deltas are made from', async () => {
    const thin = repository.pack(['main', `^${first}`], { thin: true });
    const { ours, name } = stored(await indexed(thin, committed));
    const file = join(ours, 'pack', `pack-${name}`);
    const listed = runGit(['verify-pack', '-v', `${file}.idx`]).toString();
    assert.match(listed, /: ok\n$/);
    const sent = repository.line(['rev-list', '--objects', '--no-object-names', 'main', `^${first}`]).split('\n');
    for (const id of sent) assert.match(listed, new RegExp(`^${id} `, 'm'));
    assert.ok(readFileSync(`${file}.pack`).readUInt32BE(8) > sent.length, 'the pack was thin');
    // git takes the tables for its own.
    assert.equal(runGit(['index-pack', '--verify', `${file}.pack`]).toString(), '');
    const again = newFolder();
    runGit(['index-pack', '-o', join(again, 'x.idx'), `${file}.pack`]);
    assert.ok(readFileSync(join(again, 'x.idx')).equals(readFileSync(`${file}.idx`)));
  });

  test('is asked only for objects that the committed tree does not name which its own is made from', async () => {
    const files = Object.fromEntries(Array.from({ length: 100 }, (_, file) => [`file-${file}`, `file ${file}\n`]));
    const wide = testRepository(join(folder.path, 'wide'));
    const before = wide.commit(files);
    const after = wide.commit({ ...files, 'file-7': 'another file\n' });
    const pack = await committedPack(wide.pack([before]));
    let lookups = 0;
    const find: PackIndex['find'] = (id) => {
      lookups += 1;
      return pack.index.find(id);
    };
    const watched = { ...pack, index: { ...pack.index, find } };
    assert.ok(await indexed(wide.pack([after, `^${before}`], { thin: true }), watched));
    assert.ok(lookups < 20, `${lookups} lookups`);
  });

  test('is left to git where it changes what a file of the committed tree is, made from that tree or whole', async () => {
    const tree = repository.git(['cat-file', 'tree', `${first}^{tree}`]);
    const changed = Buffer.from(tree.toString('latin1').replace('100644 README.md', '40000 README.md'), 'latin1');
    const literal = Array.from({ length: Math.ceil(changed.length / 100) }, (_, part) => {
      const bytes = changed.subarray(part * 100, part * 100 + 100);
      return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    });
    const bytes = Buffer.concat([deltaSize(tree.length), deltaSize(changed.length), ...literal]);
    for (const entry of [
      rawEntry({ type: 'tree', bytes: changed }),
      rawEntry({ type: 'ref-delta', base: rawId('tree', tree), bytes }),
    ]) {
      assert.equal(await indexed(rawPack([entry]), committed), null);
    }
  });

  test('starts no git for a push as people make it', async () => {
    const log = join(folder.path, 'git.log');
    const database = await testDatabase({ gitPath: loggingGit(log) });
    const objects = await database.push(database.newObjects(), repository.pack([first]));
    const before = existsSync(log) ? readFileSync(log, 'utf8') : '';
    await database.push(objects, repository.pack(['main', `^${first}`], { thin: true }));
    assert.equal(readFileSync(log, 'utf8').slice(before.length), '');
    await database.close();
  });

  test('starts no git for a history of as many objects as are allowed, and one for a longer history', async () => {
    const log = join(folder.path, 'history-git.log');
    const database = await testDatabase({ gitPath: loggingGit(log) });
    const before = existsSync(log) ? readFileSync(log, 'utf8') : '';
    await database.push(database.newObjects(), historyOf(512));
    assert.equal(readFileSync(log, 'utf8').slice(before.length), '');
    await database.push(database.newObjects(), historyOf(513));
    assert.match(readFileSync(log, 'utf8').slice(before.length), /^index-pack/);
    await database.close();
  });

  test('is left to git where its header is another one, though its checksum is right', async () => {
    const blob = rawEntry({ type: 'blob', bytes: Buffer.from('blob\n') });
    assert.notEqual(await indexed(rawPack([blob]), committed), null);
    for (const byte of [0, 3, 7]) {
      const body = Buffer.from(rawPack([blob]).subarray(0, -20));
      body[byte] = (body[byte] ?? 0) ^ 1;
      const pack = Buffer.concat([body, createHash('sha1').update(body).digest()]);
      assert.equal(await indexed(pack, committed), null, `byte ${byte}`);
    }
  });

  test('lets other requests have the event loop while it is checked', async () => {
    let turn = 0;
    let isChecked = false;
    const others = (async () => {
      while (!isChecked) {
        await nextTurn();
        turn += 1;
      }
    })();
    const hashedIn = new Map<number, number>();
    const slowHash: HashObject = (type, bytes) => {
      hashedIn.set(turn, (hashedIn.get(turn) ?? 0) + 1);
      for (const sinceMs = performance.now(); performance.now() - sinceMs < 0.5; );
      return hash(type, bytes);
    };
    assert.ok(await indexed(historyOf(512), committed, slowHash));
    isChecked = true;
    await others;
    // A turn takes two milliseconds, so five objects at most.
    assert.ok(Math.max(...hashedIn.values()) <= 5, JSON.stringify([...hashedIn.values()]));
  });

  test('is left to git where its checksum is wrong, or what it has is not plain', async () => {
    const wrongSum = rawPack([rawEntry({ type: 'blob', bytes: Buffer.from('a new file') })]);
    wrongSum.writeUInt8(wrongSum.readUInt8(wrongSum.length - 1) ^ 1, wrongSum.length - 1);
    const unknown = rawPack([rawEntry({ type: 'tag', bytes: Buffer.from('object x') })]);
    for (const bytes of [wrongSum, unknown]) {
      assert.equal(await indexed(bytes, committed), null);
    }
  });
});

/** Each an object of 64 bytes, a delta of the one before. */
const DEEP = 4_700;
const deepObject = (depth: number): Buffer => Buffer.from(String(depth).padStart(8, '0').padEnd(64, 'a'));

function deepPack(): Buffer {
  const entries = [rawEntry({ type: 'blob', bytes: deepObject(0) })];
  for (let depth = 1; depth <= DEEP; depth += 1) {
    const start = Buffer.from([64, 64, 8]);
    const delta = Buffer.concat([start, deepObject(depth).subarray(0, 8), Buffer.from([0x91, 8, 56])]);
    entries.push(rawEntry({ type: 'ofs-delta', distance: entries.at(-1)?.length ?? 0, bytes: delta }));
  }
  return rawPack(entries);
}

/** A push of deltas of the committed objects at these depths. */
function deltasOf(depths: readonly number[]): Buffer {
  return rawPack(
    depths.map((depth) => {
      const made = Buffer.from(`made of ${depth}`);
      const delta = Buffer.concat([Buffer.from([64, made.length, made.length]), made]);
      return rawEntry({ type: 'ref-delta', base: rawId('blob', deepObject(depth)), bytes: delta });
    }),
  );
}

/** A push of a folder of the committed objects at these depths. */
function folderOf(depths: readonly number[]): Buffer {
  const entries = depths.map((depth, at) => {
    const id = Buffer.from(rawId('blob', deepObject(depth)), 'hex');
    return Buffer.concat([Buffer.from(`100644 f${String(at).padStart(4, '0')}\0`), id]);
  });
  return rawPack([rawEntry({ type: 'tree', bytes: Buffer.concat(entries) })]);
}

const range = (start: number, length: number): readonly number[] => Array.from({ length }, (_, at) => start + at);

describe('A small pack over long chains of deltas', () => {
  const cache = createObjectCache(2 ** 20);
  const clear = (): void => [...cache.keys()].forEach((key) => cache.delete(key));
  let deep: OpenPack;
  let reads = 0;

  beforeAll(async () => {
    const pages = createFilePages({ memoryBytesMax: 2 ** 24 });
    const count = <Result>(result: Result): Result => {
      reads += 1;
      return result;
    };
    deep = await committedPack(deepPack(), {
      cache,
      pages: { ...pages, peek: (...about) => count(pages.peek(...about)) },
    });
  });

  test.each([
    { brings: 'a delta of an object 50 deltas deep', bytes: deltasOf([50]), isAccepted: true },
    { brings: 'a delta of an object 51 deltas deep', bytes: deltasOf([51]), isAccepted: false },
    { brings: 'deltas of 64 objects, each made from the one before', bytes: deltasOf(range(10, 64)), isAccepted: true },
    { brings: 'deltas of 65 objects', bytes: deltasOf(range(10, 65)), isAccepted: false },
    { brings: 'deltas of five objects 45 deltas deep', bytes: deltasOf([45, 44, 43, 42, 41]), isAccepted: false },
    { brings: 'deltas of 120 objects 4,000 deltas deep', bytes: deltasOf(range(4_000, 120)), isAccepted: false },
    { brings: 'a folder of 50 objects', bytes: folderOf(range(0, 50)), isAccepted: true },
    { brings: 'a folder of 512 objects', bytes: folderOf(range(0, 512)), isAccepted: false },
    { brings: 'a folder of 512 objects 4,000 deltas deep', bytes: folderOf(range(3_580, 512)), isAccepted: false },
    {
      brings: 'a folder of 512 objects beyond what is followed',
      bytes: folderOf(range(4_180, 512)),
      isAccepted: false,
    },
  ])('which brings $brings takes few reads', async ({ bytes, isAccepted }) => {
    clear();
    const before = reads;
    const found = await indexed(bytes, deep);
    assert.equal(found !== null, isAccepted);
    assert.ok(reads - before < 2_500, `${reads - before} reads`);
  });

  test('looks up objects over 2,000 deltas in sum, and no more', async () => {
    clear();
    const committed = createNearbyObjects([deep]);
    const id = objectId(rawId('blob', deepObject(50)));
    for (let lookup = 0; lookup < 40; lookup += 1) {
      assert.deepEqual(await committed.info(id), { id, type: 'blob', sizeBytes: 64 });
    }
    await assert.rejects(committed.info(id));
  });

  test('starts git once for its check', async () => {
    const log = join(folder.path, 'deep-git.log');
    const database = await testDatabase({ gitPath: loggingGit(log) });
    const objects = await database.push(database.newObjects(), deepPack());
    const before = readFileSync(log, 'utf8');
    const received = await database.receive(objects, folderOf(range(4_180, 512)));
    assert.ok(!('refused' in received));
    await received.discard();
    const started = readFileSync(log, 'utf8').slice(before.length).trimEnd().split('\n');
    assert.equal(started.length, 1, started.join('\n'));
    assert.match(started[0] ?? '', /index-pack/);
    await database.close();
  });

  test('ends when its client leaves', async () => {
    const leaving = new AbortController();
    const committed = createNearbyObjects([deep]);
    const has = async (id: ObjectId) => {
      leaving.abort(new Error('left'));
      return committed.has(id);
    };
    const checking = { bytes: folderOf([1]), committed: { ...committed, has }, hash };
    await assert.rejects(indexSmallPack({ ...checking, signal: leaving.signal }), /left/);
  });
});

/** A new object of two bytes, and deltas of it that have this many instructions in sum. */
function copyingPack(instructions: number): Buffer {
  const base = rawEntry({ type: 'blob', bytes: Buffer.from('xy') });
  const half = instructions / 2;
  const delta = (offset: number) => {
    const copies = Buffer.from(Array<number[]>(half).fill([0x91, offset, 1]).flat());
    return Buffer.concat([deltaSize(2), deltaSize(half), copies]);
  };
  const first = rawEntry({ type: 'ofs-delta', distance: base.length, bytes: delta(0) });
  const second = rawEntry({ type: 'ofs-delta', distance: base.length + first.length, bytes: delta(1) });
  return rawPack([base, first, second]);
}

/** Trees of this many entries of 33 bytes each. */
function treesPack(trees: number, entries: number): Buffer {
  const id = Buffer.from(rawId('blob', deepObject(0)), 'hex');
  const tree = (letter: string) =>
    Buffer.concat(range(1_000, entries).flatMap((at) => [Buffer.from(`100644 ${letter}${at}\0`), id]));
  return rawPack([...'abcdefghi'.slice(0, trees)].map((letter) => rawEntry({ type: 'tree', bytes: tree(letter) })));
}

describe('A small pack of much work', () => {
  let committed: OpenPack;

  beforeAll(async () => {
    committed = await committedPack(rawPack([rawEntry({ type: 'blob', bytes: deepObject(0) })]));
  });

  test.each([
    { has: '20,000 instructions', bytes: copyingPack(20_000), isAccepted: true },
    { has: '20,002 instructions', bytes: copyingPack(20_002), isAccepted: false },
    { has: '992 entries in a tree', bytes: treesPack(1, 992), isAccepted: true },
    { has: '993 entries in a tree', bytes: treesPack(1, 993), isAccepted: false },
    { has: '992 entries in each of eight trees', bytes: treesPack(8, 992), isAccepted: true },
    { has: '992 entries in each of nine trees', bytes: treesPack(9, 992), isAccepted: false },
  ])('is left to git beyond the bounds: $has', async ({ bytes, isAccepted }) => {
    assert.ok(bytes.length < 64 * 1024);
    assert.equal((await indexed(bytes, committed)) !== null, isAccepted);
  });
});

/** A push of a tree with a link to the blob, and of the blob unless it is committed. */
function linkPack(target: Buffer, isCommitted = false): Buffer {
  const entry = Buffer.concat([Buffer.from('120000 link\0'), Buffer.from(rawId('blob', target), 'hex')]);
  const tree = rawEntry({ type: 'tree', bytes: entry });
  return rawPack(isCommitted ? [tree] : [tree, rawEntry({ type: 'blob', bytes: target })]);
}

describe('A small pack with a link', () => {
  const bad = Buffer.from('../.git/hooks/x');
  const good = Buffer.from('../docs/a file-1.md');
  let committed: OpenPack;

  beforeAll(async () => {
    committed = await committedPack(rawPack([bad, good].map((bytes) => rawEntry({ type: 'blob', bytes }))));
  });

  test.each([
    { to: 'a file', bytes: linkPack(Buffer.from('a/guide')), isAccepted: true },
    { to: 'a path of 4,095 bytes', bytes: linkPack(Buffer.alloc(4_095, 'a')), isAccepted: true },
    { to: 'a path of 4,096 bytes', bytes: linkPack(Buffer.alloc(4_096, 'a')), isAccepted: false },
    { to: 'a file, which is committed', bytes: linkPack(good, true), isAccepted: true },
    { to: '.git, which is committed', bytes: linkPack(bad, true), isAccepted: false },
    ...['.git', 'a/.GIT/b', 'GIT~1', 'a\\.git', 'a\0b', '', '.g\u200cit'].map((target) => ({
      to: JSON.stringify(target),
      bytes: linkPack(Buffer.from(target)),
      isAccepted: false,
    })),
  ])('to $to is accepted in process only if no version of git refuses it', async ({ bytes, isAccepted }) => {
    assert.equal((await indexed(bytes, committed)) !== null, isAccepted);
  });
});

describe('A small pack over an object that has rotted on the disk', () => {
  test('is not completed with it', async () => {
    const [whole, rotted] = ['good', 'evil'].map((end) => Buffer.from(`${'0123456789abcdef'.repeat(4)}${end}`));
    if (whole === undefined || rotted === undefined) return assert.fail('no objects');
    const committed = await committedPack(rawPack([rawEntry({ type: 'blob', bytes: rotted })]));
    const id = rawId('blob', whole);
    const find = (wanted: Uint8Array) => (Buffer.from(wanted).toString('hex') === id ? 12 : null);
    const delta = Buffer.concat([deltaSize(whole.length), deltaSize(64), Buffer.from([0x90, 64])]);
    const bytes = rawPack([rawEntry({ type: 'ref-delta', base: id, bytes: delta })]);
    assert.equal(await indexed(bytes, { ...committed, index: { ...committed.index, find } }), null);
  });
});

describe('Small packs with something wrong', () => {
  let committed: OpenPack;
  let byGit: TestDatabase;
  let objects: CommittedObjects;

  beforeAll(async () => {
    const pack = rawPack(committedEntries());
    committed = await committedPack(pack);
    byGit = await testDatabase({ hash: null });
    objects = await byGit.push(byGit.newObjects(), pack);
  });
  afterAll(() => byGit.close());

  /** Whether a pack is accepted in process; then git accepts it too, and can read what was stored. */
  const isAccepted = async (bytes: Buffer, label: string): Promise<boolean> => {
    const found = bytes.length < 12 ? null : await indexed(bytes, committed);
    if (found === null) return false;
    const received = await byGit.receive(objects, bytes);
    assert.ok(!('refused' in received), `${label}: ${JSON.stringify(received)}`);
    if (found.pack === bytes.toString('hex', bytes.length - 20)) assert.equal(received.pack, found.pack, label);
    await received.discard();
    const { ours } = stored(found);
    assertReadable(ours, found.pack, label);
    rmSync(ours, { recursive: true });
    return true;
  };

  test.each(ODD_PACKS)('$name is accepted in process only where git accepts and reads it', async (odd) => {
    await isAccepted(rawPack(odd.entries), odd.name);
  });

  /** In this many objects git looks for what cannot be read, and in fewer this process. */
  test.each([0, 200])('are refused by git where they could not be read, with %i more objects', async (more) => {
    const known = newFolder();
    const GIT_ALTERNATE_OBJECT_DIRECTORIES = known;
    runGit(['index-pack', '--stdin'], {
      input: rawPack(committedEntries()),
      env: { GIT_DIR: bare, GIT_OBJECT_DIRECTORY: known },
    });
    const others = Array.from({ length: more }, (_, at) => rawEntry({ type: 'blob', bytes: Buffer.from(`${at}`) }));
    let refused = 0;
    for (const { name, entries, isMisread } of ODD_PACKS) {
      const bytes = rawPack([...others, ...entries]);
      const received = await fullyChecked(await byGit.receive(objects, bytes));
      if ('refused' in received) {
        refused += 1;
        assert.match(received.refused, /^pack-/, name);
        continue;
      }
      await received.discard();
      if (isMisread) continue;
      const theirs = newFolder();
      const env = { GIT_DIR: bare, GIT_OBJECT_DIRECTORY: theirs, GIT_ALTERNATE_OBJECT_DIRECTORIES };
      runGit(['index-pack', '--stdin', '--fix-thin'], { input: bytes, env });
      assertReadable(theirs, received.pack, name);
    }
    assert.ok(refused > 10);
  });

  test('are never accepted in process where git refuses them', async (context) => {
    let [accepted, sound, acceptedSound] = [0, 0, 0];
    for (const seed of FIRST_SEEDS.flatMap((first) => Array.from({ length: SEEDS_EACH }, (_, at) => first + at))) {
      const { bytes, isSound } = mutatedPack(seed);
      if (isSound) sound += 1;
      if (!(await isAccepted(bytes, `seed ${seed}`))) continue;
      accepted += 1;
      if (isSound) acceptedSound += 1;
    }
    const made = `${FIRST_SEEDS.length * SEEDS_EACH} made from the seeds behind ${FIRST_SEEDS.join(', ')}`;
    noteFigure(context, `small packs: ${made}, ${accepted} accepted in process, none that git refuses`);
    assert.equal(acceptedSound, sound, 'packs with nothing wrong are accepted in process');
  });
});
