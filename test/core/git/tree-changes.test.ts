/**
 * Changes of files, applied to trees, compared with git. `STRATA_TREE_ROUNDS=10000` makes the random ones as many, and
 * `STRATA_TREE_SEED` makes others.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'vitest';
import type { TreeEntry } from '../../../core/git/objects.ts';
import { writingTree } from '../../../core/git/tree-bytes.ts';
import {
  CHANGED_NAMES_MAX,
  type ChangedTree,
  type ChangeFault,
  changeTree,
  type TreeChange,
  type Trees,
} from '../../../core/git/tree-changes.ts';
import { EMPTY_TREE_ID, type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import { finish } from '../../../core/kernel/turns.ts';
import { bytesOf, expectedFiles, move, put, randomChange, remove } from '../../support/random-changes.ts';
import { createDice } from '../../support/seeded.ts';
import { git } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';

const blobOf = (digit: string) => objectId(digit.repeat(40));

function nameOf(type: string, bytes: Uint8Array): ObjectId {
  return objectId(createHash('sha1').update(`${type} ${bytes.length}\0`).update(bytes).digest('hex'));
}

interface Kept extends Trees {
  readonly reads: ObjectId[];
  readonly entries: Map<ObjectId, readonly TreeEntry[]>;
  add(made: ChangedTree['made']): void;
}

function keep(): Kept {
  const entries = new Map<ObjectId, readonly TreeEntry[]>([[EMPTY_TREE_ID, []]]);
  const reads: ObjectId[] = [];
  return {
    reads,
    entries,
    async read(id) {
      reads.push(id);
      const found = entries.get(id);
      if (found === undefined) throw new Error(`There is no tree ${id}`);
      return found;
    },
    name: (bytes) => nameOf('tree', bytes),
    nextTurn: () => Promise.resolve(),
    add(made) {
      for (const { id, bytes } of made) entries.set(id, parse(Buffer.from(bytes)));
    },
  };
}

function parse(bytes: Buffer): readonly TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [space, zero] = [bytes.indexOf(0x20, at), bytes.indexOf(0, at)];
    const mode = bytes.toString('latin1', at, space).padStart(6, '0');
    entries.push({
      name: new Uint8Array(bytes.subarray(space + 1, zero)),
      mode,
      id: objectId(bytes.toString('hex', zero + 1, zero + 21)),
    });
    at = zero + 21;
  }
  return entries;
}

async function changed(trees: Trees, root: ObjectId | null, changes: readonly TreeChange[]): Promise<ChangedTree> {
  const result = await changeTree(trees, root, changes);
  if ('fault' in result) throw new Error(JSON.stringify(result.fault));
  return result;
}

async function fault(trees: Trees, root: ObjectId | null, changes: readonly TreeChange[]): Promise<ChangeFault> {
  const result = await changeTree(trees, root, changes);
  assert.ok('fault' in result);
  return result.fault;
}

/** The files of a tree by their paths. */
function filesOf({ entries }: Kept, tree: ObjectId, prefix = ''): Map<string, string> {
  const files = new Map<string, string>();
  for (const { name, mode, id } of entries.get(tree) ?? []) {
    const path = prefix + Buffer.from(name).toString('latin1');
    if (mode === '040000') for (const file of filesOf({ entries } as Kept, id, `${path}/`)) files.set(...file);
    else files.set(path, `${mode} ${id}`);
  }
  return files;
}

describe('changes of files', () => {
  const [one, two] = [blobOf('1'), blobOf('2')];

  async function begun(files: readonly string[]): Promise<{ readonly trees: Kept; readonly root: ObjectId }> {
    const trees = keep();
    const { tree, made } = await changed(
      trees,
      null,
      files.map((path) => put(path, one)),
    );
    trees.add(made);
    return { trees, root: tree };
  }

  test('write, delete and move files and folders', async () => {
    const { trees, root } = await begun(['a', 'b/c', 'b/d', 'e/f/g', 'h']);
    const { tree, made } = await changed(trees, root, [
      put('a', two),
      put('new/file', two, '100755'),
      remove('b/c'),
      move('e', 'moved/e'),
      remove('h'),
      put('h/now/a/folder', two, '120000'),
    ]);
    trees.add(made);
    assert.deepEqual(Object.fromEntries(filesOf(trees, tree)), {
      a: `100644 ${two}`,
      'b/d': `100644 ${one}`,
      'h/now/a/folder': `120000 ${two}`,
      'moved/e/f/g': `100644 ${one}`,
      'new/file': `100755 ${two}`,
    });
  });

  test('keep the mode of a file that is there, and say what was at their paths', async () => {
    const { trees, root } = await begun(['a']);
    const executable = await changed(trees, root, [put('run', one, '100755'), remove('a')]);
    assert.deepEqual(executable.seen, [null, one]);
    trees.add(executable.made);
    const again = await changed(trees, executable.tree, [put('run', two)]);
    trees.add(again.made);
    assert.deepEqual(Object.fromEntries(filesOf(trees, again.tree)), { run: `100755 ${two}` });
    assert.deepEqual(again.seen, [one]);
  });

  test('that change nothing make no tree', async () => {
    const { trees, root } = await begun(['a/b', 'c']);
    assert.deepEqual(await changed(trees, root, [put('a/b', one)]), { tree: root, made: [], seen: [one] });
    assert.deepEqual(await changed(trees, root, []), { tree: root, made: [], seen: [] });
  });

  test('leave no empty folder, and an empty tree where nothing is left', async () => {
    const { trees, root } = await begun(['a/b/c', 'd']);
    const { tree, made } = await changed(trees, root, [remove('a/b/c')]);
    trees.add(made);
    assert.deepEqual([...filesOf(trees, tree).keys()], ['d']);
    assert.equal((await changed(trees, root, [remove('a'), remove('d')])).tree, EMPTY_TREE_ID);
    assert.equal((await changed(trees, null, [])).tree, EMPTY_TREE_ID);
  });

  test('that do not fit are refused, each with its number', async () => {
    const { trees, root } = await begun(['a', 'b/c', 'b/d', 'e/f']);
    const cases: readonly (readonly [readonly TreeChange[], ChangeFault['code'], number, 'path' | 'to'])[] = [
      [[put('x', one), put('x', two)], 'path-changed-twice', 1, 'path'],
      [[remove('a'), move('b/c', 'a')], 'path-changed-twice', 1, 'to'],
      [[remove('b'), put('b/c', two)], 'path-changed-twice', 1, 'path'],
      [[put('b/new', two), move('b', 'g')], 'path-changed-twice', 0, 'path'],
      [[move('b', 'b/g')], 'path-changed-twice', 0, 'to'],
      [[remove('none')], 'path-missing', 0, 'path'],
      [[remove('a/b')], 'path-missing', 0, 'path'],
      [[put('x', one), move('none', 'y')], 'path-missing', 1, 'path'],
      [[move('a', 'e/f')], 'path-exists', 0, 'to'],
      [[move('a', 'e')], 'path-exists', 0, 'to'],
      [[put('b', two)], 'path-is-folder', 0, 'path'],
      [[remove('b/c'), put('b', two)], 'path-is-folder', 1, 'path'],
      [[put('x', two), put('x/y', two)], 'path-is-folder', 0, 'path'],
      [[put('a/b', two)], 'path-below-file', 0, 'path'],
      [[move('b', 'a/b')], 'path-below-file', 0, 'to'],
      [[put('.git/config', two)], 'path-forbidden', 0, 'path'],
      [[move('a', '/a')], 'path-malformed', 0, 'to'],
    ];
    for (const [changes, code, index, field] of cases) {
      const refused = await fault(trees, root, changes);
      assert.deepEqual([refused.code, refused.index, refused.field], [code, index, field]);
    }
  });

  test('may replace a folder that they empty', async () => {
    const { trees, root } = await begun(['b/c', 'b/d']);
    const { tree, made } = await changed(trees, root, [remove('b/c'), move('b/d', 'b.d'), put('b', two)]);
    trees.add(made);
    assert.deepEqual([...filesOf(trees, tree).keys()], ['b', 'b.d']);
  });

  test('are refused where something else is there than was expected', async () => {
    const { trees, root } = await begun(['a', 'b/c']);
    const folder = (trees.entries.get(root) ?? [])[1]?.id ?? null;
    assert.ok(folder !== null);
    const expecting = (change: TreeChange, expected: ObjectId | null) => [{ ...change, expected }];
    assert.ok('tree' in (await changeTree(trees, root, expecting(put('a', two), one))));
    assert.ok('tree' in (await changeTree(trees, root, expecting(put('new', two), null))));
    assert.ok('tree' in (await changeTree(trees, root, expecting(remove('b'), folder))));
    const moved = { code: 'blob-moved', index: 0, field: 'path' };
    assert.deepEqual(await fault(trees, root, expecting(put('a', two), two)), { ...moved, found: one });
    assert.deepEqual(await fault(trees, root, expecting(put('a', two), null)), { ...moved, found: one });
    assert.deepEqual(await fault(trees, root, expecting(move('b', 'c'), one)), { ...moved, found: folder });
    assert.deepEqual(await fault(trees, root, expecting(remove('none'), one)), { ...moved, found: null });
  });

  test('leave submodules as they are, and move and delete them with their folder', async () => {
    const trees = keep();
    const treeBytes = (entry: TreeEntry) => finish(writingTree([entry]));
    const inner = treeBytes({ name: bytesOf('sub'), mode: '160000', id: one });
    const outer = treeBytes({ name: bytesOf('lib'), mode: '040000', id: nameOf('tree', inner) });
    trees.add([inner, outer].map((bytes) => ({ id: nameOf('tree', bytes), bytes })));
    const root = nameOf('tree', outer);
    for (const change of [put('lib/sub', two), remove('lib/sub'), move('lib/sub', 'x')]) {
      assert.equal((await fault(trees, root, [change])).code, 'path-is-submodule');
    }
    assert.equal((await fault(trees, root, [put('lib/sub/x', two)])).code, 'path-below-file');
    const { tree, made } = await changed(trees, root, [move('lib', 'vendor'), put('x', two)]);
    trees.add(made);
    assert.deepEqual(
      [...filesOf(trees, tree)],
      [
        ['vendor/sub', `160000 ${one}`],
        ['x', `100644 ${two}`],
      ],
    );
  });

  test('write the modes of old histories as git does', async () => {
    const trees = keep();
    const entry = (name: string, mode: string) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(one, 'hex')]);
    const bytes = Buffer.concat([entry('a', '100664'), entry('b', '100775'), entry('c', '100664')]);
    const root = nameOf('tree', bytes);
    trees.add([{ id: root, bytes }]);
    assert.equal((await changed(trees, root, [put('a', one)])).tree, root);
    const { tree, made } = await changed(trees, root, [put('d', two), move('c', 'e')]);
    trees.add(made);
    assert.deepEqual(
      [...filesOf(trees, tree).values()],
      [`100644 ${one}`, `100755 ${one}`, `100644 ${two}`, `100644 ${one}`],
    );
  });

  test('leave a name as it is that is longer than any path may be', async () => {
    const trees = keep();
    const name = new Uint8Array(300_000).fill(0xe9);
    const root = blobOf('3');
    trees.entries.set(root, [{ name, mode: '100644', id: one }]);
    const { made } = await changed(trees, root, [put('other', two)]);
    trees.add(made);
    assert.deepEqual(
      trees.entries.get(made[0]?.id ?? root)?.map((entry) => entry.name.length),
      [5, name.length],
    );
  });

  test('of one file among 50,000 read and make as many trees as its path is deep, and one more', async () => {
    const trees = keep();
    let root: ObjectId | null = null;
    for (let first = 0; first < 50_000; first += 10_000) {
      const paths = Array.from({ length: 10_000 }, (_, n) => `src/${n % 50}/${((n / 50) % 20) | 0}/${first + n}`);
      const more: ChangedTree = await changed(
        trees,
        root,
        paths.map((path) => put(path, one)),
      );
      trees.add(more.made);
      root = more.tree;
    }
    assert.equal(filesOf(trees, root ?? EMPTY_TREE_ID).size, 50_000);
    trees.reads.length = 0;
    const { tree, made } = await changed(trees, root, [put('src/7/3/20157', two)]);
    assert.deepEqual([trees.reads.length, made.length], [4, 4]);
    assert.notEqual(root, tree);
  });

  test(`have up to ${CHANGED_NAMES_MAX} names on their paths, and as large trees as may be read`, async () => {
    const trees = keep();
    const folders = 'f/'.repeat(1_999);
    const wide = Array.from({ length: CHANGED_NAMES_MAX / 2_000 }, (_, n) => put(`${n}/${folders.slice(2)}x`, one));
    const { made } = await changed(trees, null, wide);
    assert.equal(made.length, 1_999 + 1);
    const refused = await fault(trees, null, [...wide, put('y', one)]);
    assert.deepEqual([refused.code, refused.index], ['changes-too-wide', wide.length]);
    const unread = { ...trees, read: () => Promise.resolve(null) };
    assert.equal((await fault(unread, EMPTY_TREE_ID, [put('x', one)])).code, 'trees-too-large');
  });
});

test('Random changes of random trees make the trees that git makes of them, and git fsck finds no fault', async (context) => {
  const directory = await tempDir(context);
  await git(directory, ['init', '--quiet']);
  const blobs: ObjectId[] = [];
  for (const text of ['one', 'two', 'three'])
    blobs.push(objectId((await git(directory, ['hash-object', '-w', '--stdin'], text)).trim()));
  const rounds = Number(process.env['STRATA_TREE_ROUNDS'] ?? 150);
  const dice = createDice(Number(process.env['STRATA_TREE_SEED'] ?? 35));
  const trees = keep();
  let [root, files]: [ObjectId | null, Map<string, string>] = [null, new Map()];
  let compared = 0;
  for (let round = 0; round < rounds; round += 1) {
    const changes = Array.from({ length: 1 + dice.below(5) }, () => randomChange(dice, files, blobs));
    const expected = expectedFiles(files, changes);
    const result = await changeTree(trees, root, changes);
    const about = `round ${round}: ${JSON.stringify(result)}`;
    assert.equal('fault' in result, expected === null, about);
    if ('fault' in result || expected === null) continue;
    const lines = [...expected].map(([path, entry]) => Buffer.from(`${entry} 0\t${path}\0`, 'latin1'));
    await git(directory, ['read-tree', '--empty']);
    await git(directory, ['update-index', '-z', '--index-info'], Buffer.concat(lines));
    assert.equal(result.tree, (await git(directory, ['write-tree'])).trim(), about);
    trees.add(result.made);
    [root, files] = [result.tree, expected];
    compared += 1;
  }
  assert.ok(compared > rounds / 8, `${compared} of ${rounds} were compared`);
  await git(directory, ['fsck', '--strict', '--full', '--no-dangling']);
});
