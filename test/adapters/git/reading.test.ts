/** Reads of a repository through the object database, compared with what git reads. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import type { CommittedObjects, ObjectReader, WalkOptions } from '../../../core/ports/object-database.ts';
import { temporaryFolder, testRepository } from '../../support/git.ts';
import { type TestDatabase, testDatabase } from '../../support/object-database.ts';

const ALL = { offset: 0, limit: 1_000 };

const EMPTY_TREE = objectId('4b825dc642cb6eb9a060e54bf8d69288fbee4904');

describe('a reader', () => {
  const folder = temporaryFolder('reading');
  const repository = testRepository(join(folder.path, 'repository'));
  const large = randomBytes(3_000_000);
  const commits: ObjectId[] = [];
  let database: TestDatabase;
  let objects: CommittedObjects;
  let reader: ObjectReader;
  let side: ObjectId;

  beforeAll(async () => {
    database = await testDatabase();
    objects = database.newObjects();
    for (let index = 0; index < 12; index += 1) {
      const tip = repository.commit({ [`folder/file-${index}`]: `content ${index}\n`, same: 'always' });
      const excluded = commits.at(-1);
      objects = await database.push(objects, repository.pack(excluded === undefined ? [tip] : [tip, `^${excluded}`]));
      commits.push(tip);
    }
    side = repository.commit(
      { side: 'line', 'large.bin': large },
      { branch: 'side', parents: [commits[3] ?? EMPTY_TREE] },
    );
    objects = await database.push(objects, repository.pack([side, `^${commits[3]}`]));
    reader = await database.database.open(objects);
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });
  const rev = (name: string) => objectId(repository.line(['rev-parse', name]));
  const tip = () => commits.at(-1) ?? EMPTY_TREE;

  test('finds type and size of each object of the repository, and no other object', async () => {
    const blob = rev('main:same');
    const [commit, found, nothing, empty] = await reader.lookup([tip(), blob, objectId('2'.repeat(40)), EMPTY_TREE]);
    assert.equal(commit?.type, 'commit');
    assert.deepEqual(found, { id: blob, type: 'blob', sizeBytes: 6 });
    assert.equal(nothing, null);
    assert.deepEqual(empty, { id: EMPTY_TREE, type: 'tree', sizeBytes: 0 });
  });

  test('reads commits and trees, and returns null for other objects', async () => {
    const commit = await reader.commit(tip());
    assert.deepEqual(commit?.parents, [commits.at(-2)]);
    assert.equal(commit?.tree, rev('main^{tree}'));
    assert.equal(await reader.commit(rev('main:same')), null);
    assert.equal(await reader.tree(tip(), ALL), null);
    const [first, missing] = await reader.commits([commits[0] ?? EMPTY_TREE, objectId('3'.repeat(40))]);
    assert.deepEqual([first?.parents, missing], [[], null]);
    const entries = await reader.tree(rev('main^{tree}'), ALL);
    const listed = entries?.items.map(({ name, mode, id }) => `${mode} ${id} ${Buffer.from(name)}`);
    assert.deepEqual(listed, [`040000 ${rev('main:folder')} folder`, `100644 ${rev('main:same')} same`]);
    assert.deepEqual(await reader.tree(EMPTY_TREE, ALL), { items: [], total: 0 });
    assert.equal((await reader.entry(rev('main^{tree}'), Buffer.from('same')))?.id, rev('main:same'));
    assert.equal(await reader.entry(rev('main^{tree}'), Buffer.from('sam')), null);
  });

  test('streams blobs whole and in ranges, small ones and large ones', async () => {
    const bytes = async (id: ObjectId, range?: { start: number; end: number }) =>
      Buffer.concat(await Array.fromAsync(reader.blob(id, range)));
    assert.equal(String(await bytes(rev('main:same'))), 'always');
    assert.equal(String(await bytes(rev('main:same'), { start: 2, end: 4 })), 'wa');
    assert.equal(String(await bytes(rev('main:same'), { start: 4, end: 99 })), 'ys');
    assert.equal((await bytes(rev('main:same'), { start: 6, end: 9 })).length, 0);
    const id = rev('side:large.bin');
    assert.ok((await bytes(id)).equals(large));
    for (const [start, end] of [
      [0, 1],
      [65_000, 2_000_001],
      [2_999_999, 3_000_000],
      [5, 5],
    ] as const) {
      assert.ok((await bytes(id, { start, end })).equals(large.subarray(start, end)));
    }
    await assert.rejects(bytes(tip()), /no blob/);
  });

  test('walks in the order of git log, and excludes, skips and limits as requested', async () => {
    const walk = async (options: WalkOptions) => Array.fromAsync(reader.walk(options));
    const log = (...args: string[]) => repository.line(['rev-list', ...args, '--']).split('\n');
    const both = { include: [tip(), side], exclude: [] };
    assert.deepEqual(await walk(both), log('main', 'side'));
    assert.deepEqual(await walk({ ...both, skip: 2, limit: 3 }), log('--skip=2', '-n3', 'main', 'side'));
    const excluding = { include: [side], exclude: [commits[2] ?? EMPTY_TREE] };
    assert.deepEqual(await walk(excluding), log('side', `^${commits[2]}`));
    assert.deepEqual(await walk({ include: [], exclude: [] }), []);
    await assert.rejects(walk({ include: [objectId('4'.repeat(40))], exclude: [] }), /git rev-list ended with/);
  });

  test('decides which commits are ancestors of which', async () => {
    assert.equal(await reader.isAncestor(commits[0] ?? EMPTY_TREE, tip()), true);
    assert.equal(await reader.isAncestor(tip(), commits[0] ?? EMPTY_TREE), false);
    assert.equal(await reader.isAncestor(commits[4] ?? EMPTY_TREE, side), false);
    assert.equal(await reader.isAncestor(side, side), true);
  });

  test('decides it for commits far apart, too, for which git walks', async () => {
    const long = testRepository(join(folder.path, 'long'));
    const stream: string[] = [];
    for (let index = 1; index <= 600; index += 1) {
      stream.push(
        `commit refs/heads/main\nmark :${index}\ncommitter A <a@example.org> ${1_600_000_000 + index} +0000\n`,
      );
      stream.push(`data 2\nx\n${index === 1 ? '' : `from :${index - 1}\n`}\n`);
    }
    long.git(['fast-import', '--quiet'], { input: stream.join('') });
    const pushed = await database.push(database.newObjects(), long.pack(['--all']));
    const far = await database.database.open(pushed);
    const first = objectId(long.line(['rev-list', '--max-parents=0', 'main']));
    const last = objectId(long.line(['rev-parse', 'main']));
    const middle = objectId(long.line(['rev-parse', 'main~300']));
    assert.equal(await far.isAncestor(first, last), true);
    assert.equal(await far.isAncestor(last, first), false);
    assert.equal(await far.isAncestor(last, middle), false);
    far.close();
  });

  test('returns exactly the commits, trees, blobs and tags that the tips reach', async () => {
    const old = rev(`${commits[2]}^{tree}`);
    const blob = rev('side:side');
    const ids = [commits[1] ?? EMPTY_TREE, tip(), side, old, rev('main:same'), blob, objectId('5'.repeat(40))];
    const ofMain = await reader.reachable(ids, [tip()], 'main');
    assert.deepEqual([...ofMain].sort(), [commits[1] ?? EMPTY_TREE, tip(), old, rev('main:same')].sort());
    const ofBoth = await reader.reachable(ids, [tip(), side], 'both');
    assert.equal(ofBoth.size, 6);
    assert.deepEqual([...(await reader.reachable([commits[0] ?? EMPTY_TREE], [tip()], 'main'))], [commits[0]]);
    assert.deepEqual([...(await reader.reachable([side], [tip()], 'main'))], []);
    assert.deepEqual([...(await reader.reachable([tip()], [], 'none'))], []);
  });

  test('sees only the layers that it was opened with', async () => {
    const older = { ...objects, layers: [...objects.layers].slice(0, 3) };
    const past = await database.database.open(older);
    assert.deepEqual(
      (await past.lookup([commits[2] ?? EMPTY_TREE, commits[3] ?? EMPTY_TREE])).map((info) => info?.type ?? null),
      ['commit', null],
    );
    past.close();
    await assert.rejects(past.lookup([tip()]), /closed/);
  });
});
