/** The packs of pushes: which are accepted, which are refused and why, and that no file is left behind. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { EXPLAINED_PATH_LENGTH_MAX } from '../../../../adapters/git/receiving/explain-refusal.ts';
import { COMMIT_BYTES_MAX, TAG_BYTES_MAX, TREE_BYTES_MAX } from '../../../../core/git/object-bounds.ts';
import type { PackRefusalCode } from '../../../../core/git/pack-refusal.ts';
import { PackRefusedError } from '../../../../core/git/pack-refusal.ts';
import { objectId } from '../../../../core/kernel/ids.ts';
import { COMMIT_PARENTS_MAX, TAG_CHAIN_LENGTH_MAX } from '../../../../core/kernel/limits.ts';
import type { CommittedObjects, Quarantine } from '../../../../core/ports/object-database.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { runGit, temporaryFolder, testRepository } from '../../../support/git.ts';
import { commitBytes, EMPTY_TREE, packOfTags, tagBytes } from '../../../support/hostile-packs.ts';
import { fullyChecked, once, storeLayer, type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { deltaSize, rawEntry, rawId, rawPack, repeatingDelta } from '../../../support/raw-pack.ts';
import { storeUnchecked } from '../../../support/unchecked-layer.ts';

const folder = temporaryFolder('receiving');
const repository = testRepository(join(folder.path, 'repository'));
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});
afterAll(async () => {
  await db.close();
  folder.remove();
});

async function accepted(objects: CommittedObjects, pack: Uint8Array) {
  const received = await fullyChecked(await db.receive(objects, pack));
  if ('refused' in received) assert.fail(`${received.refused}: ${received.detail}`);
  return received;
}

/** Asserts that the pack is refused with this code and a matching line, and that no file is left. */
async function refused(
  code: PackRefusalCode,
  detail: RegExp,
  pack: Uint8Array | AsyncIterable<Uint8Array>,
  objects = db.newObjects(),
  options: Parameters<TestDatabase['receive']>[2] = {},
): Promise<void> {
  const received = await fullyChecked(await db.receive(objects, pack, options));
  if (!('refused' in received)) assert.fail('The pack was taken');
  assert.equal(received.refused, code, received.detail);
  assert.match(received.detail, detail);
  assert.doesNotMatch(received.detail, /\n|\/tmp|strata-/);
  await nothingLeft();
}

async function nothingLeft(): Promise<void> {
  assert.deepEqual(await filesBelow(join(db.directory, 'incoming')), []);
}

describe('a pack whose client leaves', () => {
  // When a client leaves, its request aborts the signal, and the body fails for every reader from then on.
  async function* brokenBody(leave: () => void): AsyncGenerator<Uint8Array> {
    await nextTurn();
    leave();
    await nextTurn();
    yield await Promise.reject<Uint8Array>(new Error('aborted'));
  }

  for (const when of ['before the body is read', 'while the body is read'] as const) {
    test(`${when} ends the push, and leaves no rejection without a handler`, async (context) => {
      const rejections: unknown[] = [];
      const note = (reason: unknown) => rejections.push(reason);
      process.on('unhandledRejection', note);
      context.onTestFinished(() => void process.off('unhandledRejection', note));
      const client = new AbortController();
      const leave = () => client.abort(new Error('The client went away'));
      if (when === 'before the body is read') leave();
      const receiving = db.receive(db.newObjects(), brokenBody(leave), { signal: client.signal });
      await assert.rejects(receiving, /The client went away/);
      for (let turn = 0; turn < 5; turn += 1) await nextTurn();
      assert.deepEqual(rejections, []);
      await nothingLeft();
    });
  }
});

describe('an accepted pack', () => {
  test('has its tips, and the objects that annotated tags lead to', async () => {
    const commit = repository.commit({ a: 'one' });
    const tree = objectId(repository.line(['rev-parse', `${commit}^{tree}`]));
    repository.git(['tag', '-f', '-a', '-m', 'x', 'outer', commit]);
    repository.git(['tag', '-f', '-a', '-m', 'x', 'nested', 'outer']);
    const tag = objectId(repository.line(['rev-parse', 'outer']));
    const nested = objectId(repository.line(['rev-parse', 'nested']));
    const received = await accepted(db.newObjects(), repository.pack([commit, 'outer', 'nested']));
    const unknown = objectId('1'.repeat(40));
    const peeled = { id: commit, type: 'commit' } as const;
    assert.deepEqual(await received.tips([commit, tag, nested, tree, unknown]), [
      { id: commit, type: 'commit', peeled: null },
      { id: tag, type: 'tag', peeled },
      { id: nested, type: 'tag', peeled },
      { id: tree, type: 'tree', peeled: null },
      null,
    ]);
    assert.equal(received.objectCount, 5);
    await received.discard();
    await received.discard();
    await nothingLeft();
  });

  test('is invisible until it is installed, and then visible without being fetched', async () => {
    const first = repository.commit({ a: 'seen' });
    const received = await accepted(db.newObjects(), repository.pack([first]));
    const objects = db.newObjects();
    const before = await db.database.open(objects);
    assert.deepEqual(await before.lookup([first]), [null]);
    before.close();
    const after = await db.commit(objects, received);
    const reader = await db.database.open(after);
    assert.equal((await reader.lookup([first]))[0]?.type, 'commit');
    reader.close();
  });

  test('may be thin, with delta bases in the committed layers', async () => {
    const text = Array.from({ length: 400 }, (_, line) => `line ${line}`).join('\n');
    const first = repository.commit({ thin: text });
    const objects = await db.push(db.newObjects(), repository.pack([first]));
    const second = repository.commit({ thin: `${text}\nmore` });
    const thin = repository.pack([second, `^${first}`], { thin: true });
    assert.throws(() =>
      runGit(['index-pack', '--stdin'], { cwd: testRepository(join(folder.path, 'e')).path, input: thin }),
    );
    const received = await accepted(objects, thin);
    assert.deepEqual(await received.tips([second, first]), [
      { id: second, type: 'commit', peeled: null },
      { id: first, type: 'commit', peeled: null },
    ]);
    const moves = [
      { before: first, after: second },
      { before: second, after: first },
    ];
    assert.deepEqual(await received.compareMoves(moves, new AbortController().signal), [true, false]);
    // The objects that --fix-thin appended are part of the layer.
    const grown = await db.commit(objects, received);
    const alone = { ...grown, layers: [...grown.layers].slice(1), repository: db.newObjects().repository };
    const reader = await db.database.open(alone);
    const blob = objectId(repository.line(['rev-parse', `${second}:thin`]));
    assert.equal(Buffer.concat(await Array.fromAsync(reader.blob(blob))).toString(), `${text}\nmore`);
    reader.close();
  });

  test('may hold file mode 100664, as old histories do', async () => {
    const blob = repository.object('blob', 'x');
    const tree = repository.tree([{ mode: '100664', name: 'old', id: blob }]);
    const received = await accepted(db.newObjects(), repository.packOf([tree, blob]));
    await received.discard();
  });

  test('may hold no objects when its tips are in the layers', async () => {
    const commit = repository.commit({ a: 'for an empty pack' });
    const objects = await db.push(db.newObjects(), repository.pack([commit]));
    const received = await accepted(objects, rawPack([]));
    assert.equal(received.objectCount, 0);
    assert.equal(received.pack, '029d08823bd8a8eab510ad6ac75c823cfd3ed31e');
    assert.deepEqual(await received.tips([commit]), [{ id: commit, type: 'commit', peeled: null }]);
    await received.discard();
  });

  test('may repeat committed objects in a pack of the same name', async () => {
    const pack = repository.pack([repository.commit({ a: 'twice' })]);
    const once_ = await db.push(db.newObjects(), pack);
    const twice = await db.push(once_, pack);
    const reader = await db.database.open(twice);
    assert.equal([...twice.layers].length, 2);
    reader.close();
  });

  test('is read from chunks of any size, and its end is reported once', async () => {
    const pack = repository.pack([repository.commit({ a: 'cut', b: 'x'.repeat(100_000) })]);
    for (const size of [1, 11, 4_000]) {
      let ends = 0;
      const onEndOfInput = () => {
        ends += 1;
      };
      const received = await db.receive(db.newObjects(), once(pack, size), { onEndOfInput });
      if ('refused' in received) assert.fail(received.detail);
      assert.equal(received.receivedBytes, pack.length);
      assert.equal(ends, 1);
      await received.discard();
    }
  });

  test('can be checked again against other layers, and be refused then', async () => {
    const first = repository.commit({ recheck: 'one' });
    const objects = await db.push(db.newObjects(), repository.pack([first]));
    const second = repository.commit({ recheck: 'two' });
    const received = await accepted(objects, repository.pack([second, `^${first}`]));
    const shrunk = { ...objects, layers: [], shrinkEpoch: 1, revision: 2 };
    const refusal = await received.recheck(shrunk);
    assert.equal(refusal?.refused, 'pack-not-connected');
    assert.match(refusal?.detail ?? '', /^object [0-9a-f]{40} is referred to and is neither/);
    assert.equal(await received.recheck({ ...objects, shrinkEpoch: 2, revision: 3 }), null);
    const after = await db.commit({ ...objects, shrinkEpoch: 2, revision: 3 }, received);
    const reader = await db.database.open(after);
    assert.equal(await reader.isAncestor(first, second), true);
    reader.close();
  });
});

describe('the part of a pack that some tips reach', () => {
  test('is all that is stored, without what is committed already', async () => {
    const base = repository.commit({ kept: 'base', large: 'y'.repeat(1_000) });
    const objects = await db.push(db.newObjects(), repository.pack([base]));
    const wanted = repository.commit({ kept: 'wanted' }, { parents: [base] });
    const refusedTip = repository.commit({ left: 'out' }, { parents: [base], branch: 'left-out' });
    const received = await accepted(objects, repository.pack([wanted, refusedTip, `^${base}`], { thin: true }));
    const { signal } = new AbortController();
    await received.keepReached([wanted], [base], signal);
    assert.equal(received.objectCount, 3);
    assert.deepEqual(
      (await received.tips([wanted, refusedTip])).map((tip) => tip !== null),
      [true, false],
    );
    const after = await db.commit(objects, received);
    const reader = await db.database.open(after);
    assert.deepEqual(
      (await reader.lookup([wanted, refusedTip, base])).map((info) => info !== null),
      [true, false, true],
    );
    reader.close();
    await nothingLeft();
  });

  test('may be nothing', async () => {
    const base = repository.commit({ nothing: 'new' });
    const objects = await db.push(db.newObjects(), repository.pack([base]));
    const other = repository.commit({ nothing: 'else' }, { parents: [base], branch: 'nothing' });
    const received = await accepted(objects, repository.pack([other, `^${base}`]));
    await received.keepReached([base], [], new AbortController().signal);
    assert.equal(received.objectCount, 0);
    assert.deepEqual(
      (await received.tips([base, other])).map((tip) => tip !== null),
      [true, false],
    );
    await received.discard();
    await nothingLeft();
  });
});

describe('receiving a pack of hostile objects', () => {
  const hostileTree = (mode: string, name: string, content: string) => {
    const blob = repository.object('blob', content);
    const tree = repository.tree([{ mode, name, id: blob }]);
    return repository.packOf([tree, blob]);
  };

  test('refuses a tree with .git in any disguise, and names the object and the rule', async () => {
    const blob = repository.object('blob', 'x');
    const inner = repository.tree([{ mode: '100644', name: 'config', id: blob }]);
    for (const name of ['.git', '.GIT', 'git~1', '.g\u200cit', '.git ', '.git...', '..']) {
      const tree = repository.tree([{ mode: '40000', name, id: inner }]);
      const pack = repository.packOf([tree, inner, blob]);
      await refused('pack-fsck-failed', new RegExp(`^object ${tree}: (hasDotgit|hasDotdot)`), pack);
    }
  });

  test('names the kind of the refused object, and a commit and a path that lead to it', async () => {
    const who = 'A <a@example.org> 1700000000 +0000';
    const blob = repository.object('blob', 'x');
    const bad = repository.tree([{ mode: '100644', name: '.git', id: blob }]);
    const root = repository.tree([{ mode: '40000', name: 'folder', id: bad }]);
    const commit = repository.object('commit', `tree ${root}\nauthor ${who}\ncommitter ${who}\n\nx\n`);
    // Larger than what git reads ahead, so that git stops in the middle of the pack.
    const noise = Array.from({ length: 30 }, () => repository.object('blob', randomBytes(100_000)));
    const place = `\\(a tree: folder in commit ${commit}\\)`;
    const pack = repository.packOf([commit, bad, root, blob, ...noise]);
    await refused('pack-fsck-failed', new RegExp(`^object ${bad}: hasDotgit: .* ${place}$`), once(pack, 10_000));
    const text = repository.object('blob', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=kind\n');
    const modules = repository.tree([{ mode: '100644', name: '.gitmodules', id: text }]);
    const last = repository.object('commit', `tree ${modules}\nauthor ${who}\ncommitter ${who}\n\nx\n`);
    const found = `gitmodulesUrl: .* \\(a blob: \\.gitmodules in commit ${last}\\)$`;
    await refused('pack-fsck-failed', new RegExp(found), repository.packOf([last, modules, text]));
    const headless = repository.object('commit', `tree ${root}\n\nno author\n`);
    await refused(
      'pack-fsck-failed',
      /missingAuthor: .* \(a commit\)$/,
      repository.packOf([headless, root, bad, blob]),
    );
    const tag = repository.object('tag', `object ${commit}\ntag t\n\nx\n`);
    await refused(
      'pack-fsck-failed',
      new RegExp(`^object ${tag}: cannot be parsed as a tag`),
      repository.packOf([tag]),
    );
  });

  test('names the object, its kind, path and commit for what git finds after the end of the pack', async () => {
    const who = 'A <a@example.org> 1700000000 +0000';
    const signed = `author ${who}\ncommitter ${who}\n\nx\n`;
    const id = Buffer.alloc(20, 1).toString('hex');
    const text = Buffer.from('x');
    const treeOf = (mode: string, name: string, of: string) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(of, 'hex')]);
    const plain = treeOf('100644', 'plain', rawId('blob', text));
    /** The object as a delta that inserts all of it. */
    const deltaOf = (base: Uint8Array, type: 'tree' | 'commit' | 'tag', bytes: Uint8Array) =>
      rawEntry({
        type: 'ref-delta',
        base: rawId(type, base),
        bytes: Buffer.concat([deltaSize(base.length), deltaSize(bytes.length), Buffer.from([bytes.length]), bytes]),
      });
    const commitOf = (tree: Uint8Array) => Buffer.from(`tree ${rawId('tree', tree)}\n${signed}`);
    const whole = (type: 'tree' | 'commit' | 'blob' | 'tag', bytes: Uint8Array) => rawEntry({ type, bytes });

    const bad = treeOf('100644', '.git', rawId('blob', text));
    const root = treeOf('40000', 'folder', rawId('tree', bad));
    const commit = commitOf(root);
    const basics = [whole('blob', text), whole('tree', plain)];
    const place = `\\(a tree: folder in commit ${rawId('commit', commit)}\\)$`;
    const pack = rawPack([...basics, deltaOf(plain, 'tree', bad), whole('tree', root), whole('commit', commit)]);
    await refused('pack-fsck-failed', new RegExp(`^object ${rawId('tree', bad)}: hasDotgit: .* ${place}`), pack);

    const modules = Buffer.from('[submodule "x"]\n\tpath = x\n\turl = --upload-pack=late\n');
    const listing = treeOf('100644', '.gitmodules', rawId('blob', modules));
    const lists = commitOf(listing);
    const found = `^object ${rawId('blob', modules)}: gitmodulesUrl: .* \\(a blob: .gitmodules in commit`;
    const late = rawPack([whole('blob', modules), whole('commit', lists), whole('tree', listing)]);
    await refused('pack-fsck-failed', new RegExp(found), late);

    const tag = Buffer.from(`object ${rawId('tree', plain)}\ntype tree\ntag t\ntagger ${who}\n\nx\n`);
    const broken = Buffer.from(`object ${rawId('tree', plain)}\ntag t\n\nx\n`);
    const tags = rawPack([...basics, whole('tag', tag), deltaOf(tag, 'tag', broken)]);
    await refused('pack-fsck-failed', new RegExp(`^object ${rawId('tag', broken)}: cannot be parsed as a tag`), tags);

    const good = commitOf(plain);
    for (const lost of [
      `tree ${'z'.repeat(40)}\n${signed}`,
      `tree ${id}\nparent ${'z'.repeat(40)}\n\nx\n`,
      'treeless\n',
    ]) {
      const bytes = Buffer.from(lost);
      const named = new RegExp(`^object ${rawId('commit', bytes)}: cannot be parsed as a commit \\(a commit\\)$`);
      await refused('pack-fsck-failed', named, rawPack([...basics, whole('commit', bytes)]));
      const entry = bytes.length < 128 ? deltaOf(good, 'commit', bytes) : whole('commit', bytes);
      await refused('pack-fsck-failed', named, rawPack([...basics, whole('commit', good), entry]));
    }
  });

  test(`tells ${EXPLAINED_PATH_LENGTH_MAX} characters of the path, and not one more`, async () => {
    const who = 'A <a@example.org> 1700000000 +0000';
    const bad = repository.tree([{ mode: '100644', name: '.git', id: repository.object('blob', 'x') }]);
    for (const more of [0, 1]) {
      const lower = repository.tree([{ mode: '40000', name: 'l'.repeat(149 + more), id: bad }]);
      const upper = repository.tree([{ mode: '40000', name: 'u'.repeat(150), id: lower }]);
      const commit = repository.object('commit', `tree ${upper}\nauthor ${who}\ncommitter ${who}\n\nx\n`);
      const pack = repository.packOf([commit, upper, lower, bad, repository.object('blob', 'x')]);
      await refused('pack-fsck-failed', /: u{150}\/l{149} in commit/, pack);
    }
  });

  test('refuses a .gitmodules that runs commands on clone', async () => {
    const url = hostileTree('100644', '.gitmodules', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=evil\n');
    await refused('pack-fsck-failed', /gitmodulesUrl/, url);
    const name = hostileTree('100644', '.gitmodules', '[submodule "../../x"]\n\tpath = x\n\turl = https://e.org/x\n');
    await refused('pack-fsck-failed', /gitmodulesName/, name);
    const update = hostileTree('100644', '.gitmodules', '[submodule "x"]\n\turl = https://e.org\n\tupdate = !evil\n');
    await refused('pack-fsck-failed', /gitmodulesUpdate/, update);
  });

  test('refuses the tree of a bad .gitmodules that an earlier push brought, although git printed success', async () => {
    const bad = repository.object('blob', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=other\n');
    const objects = await db.push(db.newObjects(), repository.packOf([bad]));
    const tree = repository.tree([{ mode: '100644', name: '.gitmodules', id: bad }]);
    await refused('pack-fsck-failed', /./, repository.packOf([tree]), objects);
  });

  test('refuses a symbolic link for .gitmodules, and accepts those that git does not follow', async () => {
    await refused('pack-fsck-failed', /[sS]ymlink/, hostileTree('120000', '.gitmodules', '/etc/passwd'));
    for (const name of ['.gitattributes', '.gitignore', '.mailmap']) {
      await (await accepted(db.newObjects(), hostileTree('120000', name, '/etc/passwd'))).discard();
    }
    await (await accepted(db.newObjects(), hostileTree('100644', '.gitmodules', '[submodule'))).discard();
  });

  test('refuses a commit without an author, a tree in wrong order and a name with a slash', async () => {
    const blob = repository.object('blob', 'x');
    const order = ['b', 'a'].map((name) => ({ mode: '100644', name, id: blob }));
    await refused('pack-fsck-failed', /treeNotSorted/, repository.packOf([repository.tree(order), blob]));
    const twice = ['a', 'a'].map((name) => ({ mode: '100644', name, id: blob }));
    await refused('pack-fsck-failed', /duplicateEntries/, repository.packOf([repository.tree(twice), blob]));
    const slash = repository.tree([{ mode: '100644', name: 'a/b', id: blob }]);
    await refused('pack-fsck-failed', /fullPathname/, repository.packOf([slash, blob]));
    const empty = repository.tree([]);
    const commit = repository.object('commit', `tree ${empty}\n\nno author\n`);
    await refused('pack-fsck-failed', /missingAuthor/, repository.packOf([commit, empty]));
  });
});

describe('receiving a hostile pack', () => {
  const small = () => repository.pack([repository.commit({ a: `small ${Math.random()}` })]);

  test('refuses a pack that is cut off anywhere', async () => {
    const pack = small();
    for (const length of [0, 3, 11, 12, 13, 40, pack.length - 21, pack.length - 20, pack.length - 1]) {
      await refused('pack-broken', /./, pack.subarray(0, length));
    }
  });

  test('refuses a wrong checksum, or one changed byte', async () => {
    const pack = small();
    for (const place of [pack.length - 1, 60]) {
      const changed = Buffer.from(pack);
      changed[place] = (changed[place] ?? 0) ^ 1;
      await refused('pack-broken', /./, changed);
    }
    const empty = Buffer.from(rawPack([]));
    empty[31] = (empty[31] ?? 0) ^ 1;
    await refused('pack-broken', /checksum/, empty);
  });

  test('refuses bytes after the pack, although git ends with status 0', async () => {
    await refused('pack-broken', /something follows the pack/, Buffer.concat([small(), Buffer.from('more')]));
    await refused('pack-broken', /something follows the pack/, Buffer.concat([rawPack([]), Buffer.from('x')]));
  });

  test('refuses bytes that are no pack before git is started', async () => {
    await refused('pack-broken', /not a pack/, Buffer.from('GIF89a is no pack at all'));
    const version = rawPack([]);
    version[7] = 4;
    await refused('pack-broken', /not a pack of version/, version);
  });

  test('refuses a header of 2^32-1 objects, or of one above the limit, before git is started', async () => {
    await refused('pack-too-many-objects', /4294967295 objects, at most 1000000/, rawPack([], 2 ** 32 - 1));
    await refused('pack-too-many-objects', /1000001/, rawPack([], 1_000_001));
    await refused('pack-broken', /./, rawPack([], 1_000_000));
  });

  test('refuses one byte more than the limit, and accepts a pack of exactly the limit', async () => {
    const pack = small();
    const received = await db.receive(db.newObjects(), pack, { packSizeBytesMax: pack.length });
    if ('refused' in received) assert.fail(received.detail);
    await received.discard();
    const packSizeBytesMax = pack.length - 1;
    await refused('pack-too-large', new RegExp(`${packSizeBytesMax} bytes`), pack, undefined, { packSizeBytesMax });
    const noise = rawPack([
      rawEntry({ type: 'blob', bytes: Buffer.from(Array.from({ length: 400_000 }, () => Math.random() * 256)) }),
    ]);
    await refused('pack-too-large', /200000 bytes/, once(noise), undefined, { packSizeBytesMax: 200_000 });
  });

  test('reads an endless body no further than the limit', async () => {
    let given = 0;
    let returned = false;
    async function* endless() {
      try {
        yield rawPack([], 5).subarray(0, 12);
        for (;;) {
          given += 65_536;
          yield new Uint8Array(65_536);
        }
      } finally {
        returned = true;
      }
    }
    await refused('pack-broken', /./, endless(), undefined, { packSizeBytesMax: 10_000_000 });
    assert.ok(given < 11_000_000 && returned);
  });

  test('reads the rest of a refused pack, so that the client reads the answer', async () => {
    let ended = false;
    async function* body() {
      yield* once(rawPack([], 2 ** 32 - 1));
      for (let count = 0; count < 50; count += 1) yield new Uint8Array(65_536);
      ended = true;
    }
    await refused('pack-too-many-objects', /./, body());
    assert.ok(ended);
  });

  test('refuses deltas without a base, on themselves or in a circle', async () => {
    const delta = Buffer.concat([deltaSize(1), deltaSize(1), Buffer.from([0x01, 0x61])]);
    const missing = rawPack([rawEntry({ type: 'ref-delta', base: '1'.repeat(40), bytes: delta })]);
    await refused('pack-broken', /base is neither in it nor in the repository/, missing);
    const a = rawId('blob', Buffer.from('a'));
    const circle = rawPack([
      rawEntry({ type: 'ref-delta', base: a, bytes: delta }),
      rawEntry({ type: 'ref-delta', base: a, bytes: Buffer.concat([delta, Buffer.alloc(0)]) }),
    ]);
    await refused('pack-broken', /./, circle);
    const before = rawPack([rawEntry({ type: 'ofs-delta', distance: 5_000, bytes: delta })]);
    await refused('pack-broken', /./, before);
  });

  test('refuses a thin pack whose base only another repository has', async () => {
    const text = Array.from({ length: 400 }, (_, line) => `row ${line}`).join('\n');
    const first = repository.commit({ foreign: text });
    await db.push(db.newObjects(), repository.pack([first]));
    const second = repository.commit({ foreign: `${text}\nmore` });
    await refused('pack-broken', /base/, repository.pack([second, `^${first}`], { thin: true }));
  });

  test('refuses an object that is referred to as another type', async () => {
    const blob = repository.object('blob', 'not a tree');
    const person = 'A <a@example.org> 1700000000 +0000';
    const commit = repository.object('commit', `tree ${blob}\nauthor ${person}\ncommitter ${person}\n\nx\n`);
    await refused('pack-fsck-failed', /./, repository.packOf([commit, blob]));
  });
});

describe('receiving a pack that is not connected', () => {
  test('refuses a commit whose parent is missing, and names that parent and the commit', async () => {
    const first = repository.commit({ gap: 'one' });
    const who = 'A <a@example.org> 1700000000 +0000';
    const text = `tree ${repository.tree([])}\nparent ${first}\nauthor ${who}\ncommitter ${who}\n\nx\n`;
    const second = repository.object('commit', text);
    const place = `\\(a commit: parent of commit ${second}\\)$`;
    const said = new RegExp(
      `^object ${first} is referred to and is neither in the pack nor in the repository ${place}`,
    );
    await refused('pack-not-connected', said, repository.packOf([second]));
  });

  test('names what refers to the missing object: a commit, a tag, or a folder by its path', async () => {
    const commit = repository.commit({ 'folder/inner/file': 'left out', top: 'kept' });
    const id = (name: string) => objectId(repository.line(['rev-parse', name]));
    const [root, a, b] = [id(`${commit}^{tree}`), id(`${commit}:folder`), id(`${commit}:folder/inner`)];
    const [file, top] = [id(`${commit}:folder/inner/file`), id(`${commit}:top`)];
    const parent = id(`${commit}^`);
    const objects = await db.push(db.newObjects(), repository.pack([parent]));
    const says = (words: string) => new RegExp(`is neither .* \\(${words}\\)$`);
    const lacking = (missing: string) =>
      repository.packOf([commit, root, a, b, file, top].filter((other) => other !== missing));
    for (const [missing, words] of [
      [root, `a tree: root folder of commit ${commit}`],
      [b, `a tree: folder/inner in commit ${commit}`],
      [file, `a blob: folder/inner/file in commit ${commit}`],
      [top, `a blob: top in commit ${commit}`],
    ] as const) {
      await refused('pack-not-connected', says(words), lacking(missing), objects);
    }
    await refused('pack-not-connected', says(`a blob: file in tree ${b}`), repository.packOf([b]));
    const who = 'A <a@example.org> 1700000000 +0000';
    const tag = repository.object('tag', `object ${commit}\ntype commit\ntag t\ntagger ${who}\n\nx\n`);
    await refused('pack-not-connected', says(`a commit: target of tag ${tag}`), repository.packOf([tag]));
  });

  test('refuses a pack without one of its trees or blobs', async () => {
    const commit = repository.commit({ left: 'out' });
    const tree = objectId(repository.line(['rev-parse', `${commit}^{tree}`]));
    await refused('pack-not-connected', /neither/, repository.packOf([tree]));
    await refused('pack-not-connected', /neither/, repository.packOf([commit]));
  });

  test('refuses a push from a shallow clone unless the repository has the history', async () => {
    const origin = testRepository(join(folder.path, 'origin'));
    const first = origin.commit({ a: '1' });
    const second = origin.commit({ a: '2' });
    const clone = join(folder.path, 'shallow');
    runGit(['clone', '-q', '--depth=1', `file://${origin.path}`, clone]);
    const shallow = testRepository(clone);
    const third = shallow.commit({ a: '3' });
    const whole = shallow.pack([third]);
    await refused('pack-not-connected', new RegExp(first), whole);
    const objects = await db.push(db.newObjects(), origin.pack([second]));
    const received = await accepted(objects, shallow.pack([third, `^${second}`]));
    await received.discard();
  });

  test('refuses a push that builds on objects of a push that is not committed', async () => {
    const first = repository.commit({ uncommitted: 'one' });
    const objects = db.newObjects();
    const waiting = await accepted(objects, repository.pack([first]));
    const second = repository.commit({ uncommitted: 'two' });
    const received = await db.receive(objects, repository.pack([second, `^${first}`]));
    assert.equal('refused' in received && received.refused, 'pack-not-connected');
    await waiting.discard();
  });

  test('follows tags of tags to the bound and no deeper', async () => {
    const { bytes, ids } = packOfTags(TAG_CHAIN_LENGTH_MAX + 2);
    const received = await accepted(db.newObjects(), bytes);
    const peeled = { id: objectId(EMPTY_TREE), type: 'tree' } as const;
    const tips = ids.map((id, index) => (index < 2 ? 'tag-too-deep' : { id, type: 'tag' as const, peeled }));
    assert.deepEqual(await received.tips(ids), tips);
    assert.deepEqual(await received.tips(ids.toReversed()), tips.toReversed());
    await received.discard();
  });
});

describe('receiving objects at the bounds of their types', () => {
  const commitOf = (sizeBytes: number) => {
    const empty = commitBytes([], '').length;
    return { type: 'commit', bytes: commitBytes([], 'm'.repeat(sizeBytes - empty)) } as const;
  };
  const tagOf = (sizeBytes: number) => {
    const empty = tagBytes(EMPTY_TREE, 'tree', '').length;
    return { type: 'tag', bytes: tagBytes(EMPTY_TREE, 'tree', 'm'.repeat(sizeBytes - empty)) } as const;
  };
  /** A tree of this size: one empty file under many names. */
  const treeOf = (sizeBytes: number) => {
    const entries: Buffer[] = [];
    const id = Buffer.from(rawId('blob', Buffer.alloc(0)), 'hex');
    for (let left = sizeBytes; left > 0; ) {
      const length = left > 400 ? 228 : left;
      const name = `${String(entries.length).padStart(8, '0')}`.padEnd(length - 28, 'n');
      entries.push(Buffer.from(`100644 ${name}\0`), id);
      left -= length;
    }
    return { type: 'tree', bytes: Buffer.concat(entries) } as const;
  };
  const emptyBlob = rawEntry({ type: 'blob', bytes: Buffer.alloc(0) });
  const emptyTree = rawEntry({ type: 'tree', bytes: Buffer.alloc(0) });
  const kinds = [
    ['commit', COMMIT_BYTES_MAX, commitOf],
    ['tag', TAG_BYTES_MAX, tagOf],
    ['tree', TREE_BYTES_MAX, treeOf],
  ] as const;
  /** Enough blobs that git checks the sizes, and not Strata in process. */
  const fill = Array.from({ length: 200 }, (_, n) => rawEntry({ type: 'blob', bytes: Buffer.from(`blob ${n}`) }));

  for (const [kind, bytesMax, make] of kinds) {
    for (const [how, others] of [
      ['in a small pack', []],
      ['in a large pack', fill],
    ] as const) {
      test(`accepts a ${kind} of the largest size, and refuses one a byte larger, ${how}`, async () => {
        const packed = (object: ReturnType<typeof make>) =>
          rawPack([emptyTree, emptyBlob, ...others, rawEntry(object)]);
        const largest = make(bytesMax);
        assert.equal(largest.bytes.length, bytesMax);
        const received = await accepted(db.newObjects(), packed(largest));
        await received.discard();
        const larger = make(bytesMax + 1);
        assert.equal(larger.bytes.length, bytesMax + 1);
        const id = rawId(kind, larger.bytes);
        const detail = new RegExp(`^${kind} ${id} has ${bytesMax + 1} bytes, at most ${bytesMax} are allowed$`);
        await refused('pack-object-too-large', detail, packed(larger));
      });
    }
  }

  describe('in a large pack, which git checks while it is made ready to be stored', () => {
    const large = { type: 'commit', bytes: commitBytes([], 'm'.repeat(COMMIT_BYTES_MAX)) } as const;
    const tip = objectId(rawId('commit', large.bytes));
    const received = async (signal = new AbortController().signal) => {
      const quarantine = await db.receive(db.newObjects(), rawPack([emptyTree, ...fill, rawEntry(large)]), { signal });
      if ('refused' in quarantine) assert.fail(quarantine.detail);
      return quarantine;
    };
    const isRefused = (error: unknown) =>
      error instanceof PackRefusedError && error.refusal.refused === 'pack-object-too-large';

    test('nothing is stored of what is refused', async () => {
      const stored = async () => (await Array.fromAsync(db.layers.list(''))).length;
      const before = await stored();
      const quarantine = await received();
      await assert.rejects(storeLayer(db.layers, db.newObjects(), quarantine), isRefused);
      await quarantine.discard();
      assert.equal(await stored(), before);
      await nothingLeft();
    });

    test('git reads no history and makes no other pack of what is refused', async () => {
      const { signal } = new AbortController();
      for (const reading of [
        (quarantine: Quarantine) => quarantine.compareMoves([{ before: tip, after: tip }], signal),
        (quarantine: Quarantine) => quarantine.commitSeconds([tip]),
        (quarantine: Quarantine) => Array.fromAsync(quarantine.diff(null, tip, { signal, spanMs: 5_000 })),
        (quarantine: Quarantine) => quarantine.keepReached([tip], [], signal),
        (quarantine: Quarantine) => quarantine.recheck(db.newObjects()),
        // Git cannot count what a missing object reaches.
        (quarantine: Quarantine) => quarantine.leavesOver([objectId('1'.repeat(40))], [], signal),
      ]) {
        const quarantine = await received();
        await assert.rejects(reading(quarantine), isRefused);
        await quarantine.discard();
        await nothingLeft();
      }
    });

    test('the check ends with the quarantine, and with the client', async () => {
      await (await received()).discard();
      await nothingLeft();
      const client = new AbortController();
      const quarantine = await received(client.signal);
      client.abort(new Error('The client left'));
      await assert.rejects(storeLayer(db.layers, db.newObjects(), quarantine), /The client left/);
      await quarantine.discard();
      await nothingLeft();
    });
  });

  test('accepts a commit of a thousand parents, and refuses one of more', async () => {
    const root = commitBytes([], 'root');
    const child = (parents: number) => commitBytes(Array<string>(parents).fill(rawId('commit', root)), 'child');
    const packed = (parents: number) =>
      rawPack([
        emptyTree,
        rawEntry({ type: 'commit', bytes: root }),
        rawEntry({ type: 'commit', bytes: child(parents) }),
      ]);
    await (await accepted(db.newObjects(), packed(COMMIT_PARENTS_MAX))).discard();
    const id = rawId('commit', child(COMMIT_PARENTS_MAX + 1));
    const detail = new RegExp(`^commit ${id} has more than 1000 parents$`);
    await refused('pack-object-too-large', detail, packed(COMMIT_PARENTS_MAX + 1));
    // A long message does not count as parents.
    const wordy = rawPack([emptyTree, rawEntry({ type: 'commit', bytes: commitBytes([], 'm'.repeat(100_000)) })]);
    await (await accepted(db.newObjects(), wordy)).discard();
  });

  test('judges a delta by the size of the object that it makes, also in a chain', async () => {
    const small = commitOf(1_000).bytes;
    const base = rawEntry({ type: 'commit', bytes: small });
    // Each delta doubles the message.
    const steps: Buffer[] = [];
    let bytes = small;
    while (bytes.length <= COMMIT_BYTES_MAX) {
      const copy = Buffer.from([0xff, 200, 0, 0, 0, 0, 0, 0]);
      copy.writeUIntLE(bytes.length - 200, 5, 3);
      const whole = Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0]);
      whole.writeUIntLE(bytes.length, 5, 3);
      const next = Buffer.concat([bytes, bytes.subarray(200)]);
      const delta = Buffer.concat([deltaSize(bytes.length), deltaSize(next.length), whole, copy]);
      steps.push(rawEntry({ type: 'ref-delta', base: rawId('commit', bytes), bytes: delta }));
      bytes = next;
    }
    assert.ok(steps.length > 5);
    const packed = rawPack([emptyTree, base, ...steps]);
    assert.ok(packed.length < 2_000);
    await refused('pack-object-too-large', /^commit [0-9a-f]{40} has \d{7} bytes/, packed);
    await (await accepted(db.newObjects(), rawPack([emptyTree, base, ...steps.slice(0, -1)]))).discard();
  });

  test('accepts a small object whose delta base is too large but already committed', async () => {
    // Stored as by a version without these bounds.
    const old = commitOf(COMMIT_BYTES_MAX + 1);
    const objects = await storeUnchecked(db, rawPack([emptyTree, rawEntry(old)]));
    const message = Buffer.from('small\n');
    const head = old.bytes.indexOf('\n\n') + 2;
    const bytes = Buffer.concat([old.bytes.subarray(0, head), message]);
    const delta = Buffer.concat([
      deltaSize(old.bytes.length),
      deltaSize(bytes.length),
      Buffer.from([0x90, head, message.length]),
      message,
    ]);
    const thin = rawPack([rawEntry({ type: 'ref-delta', base: rawId('commit', old.bytes), bytes: delta })]);
    const received = await accepted(objects, thin);
    const id = objectId(rawId('commit', bytes));
    assert.equal(received.objectCount, 2);
    assert.deepEqual(await received.tips([id]), [{ id, type: 'commit', peeled: null }]);
    await received.discard();
  });
});

describe('receiving a costly pack', () => {
  test('refuses a small pack that inflates to more than git may hold, in bounded time and memory', async () => {
    const tight = await testDatabase({ limits: { memoryBytesMax: 1.25 * 2 ** 30, cpuSecondsMax: 20 } });
    try {
      const base = Buffer.alloc(8 * 2 ** 20);
      const bomb = rawPack([
        rawEntry({ type: 'blob', bytes: base }),
        rawEntry({ type: 'ref-delta', base: rawId('blob', base), bytes: repeatingDelta(base.length, 512) }),
      ]);
      assert.ok(bomb.length < 20_000);
      const received = await tight.receive(tight.newObjects(), bomb);
      assert.equal('refused' in received && received.refused, 'pack-too-costly');
      assert.deepEqual(await readdir(join(tight.directory, 'incoming')), []);
    } finally {
      await tight.close();
    }
  });
});
