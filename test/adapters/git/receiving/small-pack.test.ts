/** Small packs that are checked in process: never what git refuses, and as git would store them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { type HashObject, loadObjectHash } from '../../../../adapters/git/packs/object-hash.ts';
import { createObjectSource, type ObjectSource, openPack } from '../../../../adapters/git/packs/object-source.ts';
import { createObjectCache } from '../../../../adapters/git/packs/pack-file.ts';
import { indexSmallPack } from '../../../../adapters/git/receiving/small-pack.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects, ObjectType } from '../../../../core/ports/object-database.ts';
import { noteFigure } from '../../../support/figures.ts';
import { runGit, temporaryFolder, type TestRepository, testRepository } from '../../../support/git.ts';
import { COMMITTED, mutatedPack } from '../../../support/mutated-packs.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { ODD_PACKS } from '../../../support/odd-packs.ts';
import { rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';

/** A million takes half an hour (CONTRIBUTING.md). */
const MUTATED_PACKS = Number(process.env['STRATA_MUTATED_PACKS'] ?? 3_000);
const SEED = Number(process.env['STRATA_MUTATED_PACKS_SEED'] ?? 1);

const folder = temporaryFolder('small-pack');
const gone = (): never => assert.fail('No object is left to git');
let hash: HashObject;
let folders = 0;
/** A repository without objects. */
const bare = join(folder.path, 'bare.git');

beforeAll(() => {
  runGit(['init', '-q', '--bare', bare]);
  hash = loadObjectHash((error) => assert.fail(String(error))) ?? assert.fail('es-git names no objects');
});
afterAll(() => folder.remove());

/** The objects of a pack that git indexes. */
async function sourceOf(pack: Buffer): Promise<ObjectSource> {
  const path = join(folder.path, `committed-${(folders += 1)}`);
  writeFileSync(`${path}.pack`, pack);
  runGit(['index-pack', `${path}.pack`]);
  const memory = { pages: createFilePages({ memoryBytesMax: 2 ** 24 }), cache: createObjectCache(2 ** 20) };
  const open = await openPack(memory, 'committed', `${path}.pack`, `${path}.idx`);
  return createObjectSource([open], { info: gone, read: gone });
}

function newFolder(): string {
  const path = join(folder.path, `quarantine-${(folders += 1)}`);
  mkdirSync(join(path, 'pack'), { recursive: true });
  return path;
}

/** git finds pack and index right, and reads each object by its header, its size and its bytes. */
function assertReadable(quarantine: string, name: string, label: string): void {
  assert.equal(runGit(['index-pack', '--verify', join(quarantine, 'pack', `pack-${name}.pack`)]).toString(), '', label);
  const reading = ['cat-file', '--batch-all-objects', '--unordered', '--buffer', '--batch'];
  const read = runGit(reading, { env: { GIT_DIR: bare, GIT_OBJECT_DIRECTORY: quarantine } });
  for (let at = 0; at < read.length; ) {
    const end = read.indexOf('\n', at);
    const [, id, type, size] = /^([0-9a-f]{40}) (commit|tree|blob) (\d+)$/.exec(read.toString('latin1', at, end)) ?? [];
    const bytes = read.subarray(end + 1, end + 1 + Number(size));
    assert.equal(rawId((type ?? 'blob') as ObjectType, bytes), id, `${label}: ${read.toString('latin1', at, end)}`);
    at = end + 1 + bytes.length + 1;
  }
}

describe('A small pack that is checked in process', () => {
  let repository: TestRepository;
  let first: ObjectId;
  let committed: ObjectSource;

  beforeAll(async () => {
    repository = testRepository(join(folder.path, 'repository'));
    const text = Array.from({ length: 200 }, (_, line) => `line ${line}\n`).join('');
    first = repository.commit({ 'manual/guide.md': text, 'README.md': 'Read me\n', '.gitattributes': '* text=auto\n' });
    committed = await sourceOf(repository.pack([first]));
    repository.commit({ 'manual/guide.md': text.replace('line 7\n', 'line seven\n') });
  });

  test('is stored as git index-pack stores it, byte by byte', async () => {
    const pack = repository.pack(['main', `^${first}`]);
    const ours = newFolder();
    const theirs = newFolder();
    const { pack: name } =
      (await indexSmallPack({ bytes: pack, committed, hash, folder: ours })) ?? assert.fail('left to git');
    repository.git(['-c', 'pack.writeReverseIndex=true', 'index-pack', '--stdin'], {
      input: pack,
      env: { GIT_OBJECT_DIRECTORY: theirs, GIT_ALTERNATE_OBJECT_DIRECTORIES: join(repository.path, '.git/objects') },
    });
    for (const extension of ['pack', 'idx', 'rev']) {
      const file = `pack/pack-${name}.${extension}`;
      assert.ok(readFileSync(join(ours, file)).equals(readFileSync(join(theirs, file))), extension);
    }
  });

  test('is completed with the objects that its deltas are made from', async () => {
    const thin = repository.pack(['main', `^${first}`], { thin: true });
    const ours = newFolder();
    const { pack: name } =
      (await indexSmallPack({ bytes: thin, committed, hash, folder: ours })) ?? assert.fail('left to git');
    const file = join(ours, 'pack', `pack-${name}`);
    const listed = runGit(['verify-pack', '-v', `${file}.idx`]).toString();
    assert.match(listed, /: ok\n$/);
    const sent = repository.line(['rev-list', '--objects', '--no-object-names', 'main', `^${first}`]).split('\n');
    for (const id of sent) assert.match(listed, new RegExp(`^${id} `, 'm'));
    assert.ok(readFileSync(`${file}.pack`).readUInt32BE(8) > sent.length, 'the pack was thin');
    // git takes the tables for its own.
    assert.equal(runGit(['index-pack', '--verify', `${file}.pack`]).toString(), '');
    const again = newFolder();
    runGit(['-c', 'pack.writeReverseIndex=true', 'index-pack', '-o', join(again, 'x.idx'), `${file}.pack`]);
    assert.ok(readFileSync(join(again, 'x.idx')).equals(readFileSync(`${file}.idx`)));
    assert.ok(readFileSync(join(again, 'x.rev')).equals(readFileSync(`${file}.rev`)));
  });

  test('starts no git for a push as people make it', async () => {
    const log = join(folder.path, 'git.log');
    const program = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
    const path = join(folder.path, 'git');
    writeFileSync(path, `#!/bin/sh\necho "$@" >> ${log}\nexec ${program} "$@"\n`);
    chmodSync(path, 0o755);
    const database = await testDatabase({ gitPath: path });
    const objects = await database.push(database.newObjects(), repository.pack([first]));
    const before = existsSync(log) ? readFileSync(log, 'utf8') : '';
    await database.push(objects, repository.pack(['main', `^${first}`], { thin: true }));
    assert.equal(readFileSync(log, 'utf8').slice(before.length), '');
    await database.close();
  });

  test('leaves nothing where git has to decide', async () => {
    const unknown = rawPack([rawEntry({ type: 'tag', bytes: Buffer.from('object x') })]);
    const ours = newFolder();
    assert.equal(await indexSmallPack({ bytes: unknown, committed, hash, folder: ours }), null);
    assert.deepEqual(readdirSync(join(ours, 'pack')), []);
  });
});

describe('Small packs with something wrong', () => {
  let committed: ObjectSource;
  let byGit: TestDatabase;
  let objects: CommittedObjects;

  beforeAll(async () => {
    const pack = rawPack(COMMITTED.map((object) => rawEntry(object)));
    committed = await sourceOf(pack);
    byGit = await testDatabase({ hash: null });
    objects = await byGit.push(byGit.newObjects(), pack);
  });
  afterAll(() => byGit.close());

  /** Whether a pack is accepted in process; then git accepts it too, and can read what was stored. */
  const isAccepted = async (bytes: Buffer, label: string): Promise<boolean> => {
    const ours = newFolder();
    const found = bytes.length < 12 ? null : await indexSmallPack({ bytes, committed, hash, folder: ours });
    if (found === null) return false;
    const received = await byGit.receive(objects, bytes);
    assert.ok(!('refused' in received), `${label}: ${JSON.stringify(received)}`);
    if (found.pack === bytes.toString('hex', bytes.length - 20)) assert.equal(received.pack, found.pack, label);
    await received.discard();
    assertReadable(ours, found.pack, label);
    rmSync(ours, { recursive: true });
    return true;
  };

  test.each(ODD_PACKS)('$name is accepted in process only where git accepts and reads it', async (odd) => {
    await isAccepted(rawPack(odd.entries), odd.name);
  });

  /** In so many objects git looks for what cannot be read, and in fewer this process. */
  test.each([0, 200])('are refused by git where they could not be read, with %i more objects', async (more) => {
    const others = Array.from({ length: more }, (_, at) => rawEntry({ type: 'blob', bytes: Buffer.from(`${at}`) }));
    let refused = 0;
    for (const { name, entries, isMisread } of ODD_PACKS) {
      const bytes = rawPack([...others, ...entries]);
      const received = await byGit.receive(objects, bytes);
      if ('refused' in received) {
        refused += 1;
        assert.equal(received.refused, 'pack-broken', name);
        continue;
      }
      await received.discard();
      if (isMisread) continue;
      const theirs = newFolder();
      runGit(['index-pack', '--stdin'], { input: bytes, env: { GIT_DIR: bare, GIT_OBJECT_DIRECTORY: theirs } });
      assertReadable(theirs, received.pack, name);
    }
    assert.ok(refused > 10);
  });

  test('are never accepted in process where git refuses them', async (context) => {
    let [accepted, sound, acceptedSound] = [0, 0, 0];
    for (let seed = SEED; seed < SEED + MUTATED_PACKS; seed += 1) {
      const { bytes, isSound } = mutatedPack(seed);
      if (isSound) sound += 1;
      if (!(await isAccepted(bytes, `seed ${seed}`))) continue;
      accepted += 1;
      if (isSound) acceptedSound += 1;
    }
    noteFigure(context, `small packs: ${MUTATED_PACKS} made, ${accepted} accepted in process, none that git refuses`);
    assert.equal(acceptedSound, sound, 'packs with nothing wrong are accepted in process');
  });
});
