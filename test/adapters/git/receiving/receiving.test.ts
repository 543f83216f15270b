/** Packs that a push brings: what is taken, what is refused and why, and what is left behind. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { objectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects, PackRefusalCode } from '../../../../core/ports/object-database.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { runGit, temporaryFolder, testRepository } from '../../../support/git.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { deltaSize, rawEntry, rawId, rawPack, repeatingDelta } from '../../../support/raw-pack.ts';

const folder = temporaryFolder('receiving');
const repository = testRepository(join(folder.path, 'repository'));
let db: TestDatabase;
before(async () => {
  db = await testDatabase();
});
after(async () => {
  await db.close();
  folder.remove();
});

async function taken(objects: CommittedObjects, pack: Uint8Array) {
  const received = await db.receive(objects, pack);
  if ('refused' in received) assert.fail(`${received.refused}: ${received.detail}`);
  return received;
}

/** Refused with this code and a line like this; nothing is left. The answer is the line. */
async function refused(
  code: PackRefusalCode,
  detail: RegExp,
  pack: Uint8Array | AsyncIterable<Uint8Array>,
  objects = db.newObjects(),
  options: Parameters<TestDatabase['receive']>[2] = {},
): Promise<void> {
  const received = await db.receive(objects, pack, options);
  if (!('refused' in received)) assert.fail('The pack was taken');
  assert.equal(received.refused, code, received.detail);
  assert.match(received.detail, detail);
  assert.doesNotMatch(received.detail, /\n|\/tmp|strata-/);
  await nothingLeft();
}

async function nothingLeft(): Promise<void> {
  assert.deepEqual(await filesBelow(join(db.directory, 'incoming')), []);
}

describe('a pack that is taken', () => {
  test('holds its tips, with what annotated tags lead to', async () => {
    const commit = repository.commit({ a: 'one' });
    const tree = objectId(repository.line(['rev-parse', `${commit}^{tree}`]));
    repository.git(['tag', '-f', '-a', '-m', 'x', 'outer', commit]);
    repository.git(['tag', '-f', '-a', '-m', 'x', 'nested', 'outer']);
    const tag = objectId(repository.line(['rev-parse', 'outer']));
    const nested = objectId(repository.line(['rev-parse', 'nested']));
    const received = await taken(db.newObjects(), repository.pack([commit, 'outer', 'nested']));
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

  test('is invisible until it is installed, and then seen without being fetched', async () => {
    const first = repository.commit({ a: 'seen' });
    const received = await taken(db.newObjects(), repository.pack([first]));
    const objects = db.newObjects();
    const before = await db.database.open(objects);
    assert.deepEqual(await before.lookup([first]), [null]);
    before.close();
    const after = await db.commit(objects, received);
    const reader = await db.database.open(after);
    assert.equal((await reader.lookup([first]))[0]?.type, 'commit');
    reader.close();
  });

  test('may be thin: its bases come from the committed layers', async () => {
    const text = Array.from({ length: 400 }, (_, line) => `line ${line}`).join('\n');
    const first = repository.commit({ thin: text });
    const objects = await db.push(db.newObjects(), repository.pack([first]));
    const second = repository.commit({ thin: `${text}\nmore` });
    const thin = repository.pack([second, `^${first}`], { thin: true });
    assert.throws(() =>
      runGit(['index-pack', '--stdin'], { cwd: testRepository(join(folder.path, 'e')).path, input: thin }),
    );
    const received = await taken(objects, thin);
    assert.deepEqual(await received.tips([second, first]), [
      { id: second, type: 'commit', peeled: null },
      { id: first, type: 'commit', peeled: null },
    ]);
    assert.equal(await received.isAncestor(first, second), true);
    assert.equal(await received.isAncestor(second, first), false);
    // What fix-thin appended is part of the layer.
    const grown = await db.commit(objects, received);
    const alone = { ...grown, layers: [...grown.layers].slice(1), repository: db.newObjects().repository };
    const reader = await db.database.open(alone);
    const blob = objectId(repository.line(['rev-parse', `${second}:thin`]));
    assert.equal(Buffer.concat(await Array.fromAsync(reader.blob(blob))).toString(), `${text}\nmore`);
    reader.close();
  });

  test('may hold what old histories hold: mode 100664', async () => {
    const blob = repository.object('blob', 'x');
    const tree = repository.tree([{ mode: '100664', name: 'old', id: blob }]);
    const received = await taken(db.newObjects(), repository.packOf([tree, blob]));
    await received.discard();
  });

  test('may hold no objects: its tips are those of the layers', async () => {
    const commit = repository.commit({ a: 'for an empty pack' });
    const objects = await db.push(db.newObjects(), repository.pack([commit]));
    const received = await taken(objects, rawPack([]));
    assert.equal(received.objectCount, 0);
    assert.equal(received.pack, '029d08823bd8a8eab510ad6ac75c823cfd3ed31e');
    assert.equal((await received.tips([commit]))[0]?.type, 'commit');
    await received.discard();
  });

  test('may repeat what is there, in a pack of the same name', async () => {
    const pack = repository.pack([repository.commit({ a: 'twice' })]);
    const once_ = await db.push(db.newObjects(), pack);
    const twice = await db.push(once_, pack);
    const reader = await db.database.open(twice);
    assert.equal([...twice.layers].length, 2);
    reader.close();
  });

  test('is read however its bytes are cut, and says when its end was reached', async () => {
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

  test('can be checked again against other layers, and then be refused', async () => {
    const first = repository.commit({ recheck: 'one' });
    const objects = await db.push(db.newObjects(), repository.pack([first]));
    const second = repository.commit({ recheck: 'two' });
    const received = await taken(objects, repository.pack([second, `^${first}`]));
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

describe('attacks by objects', () => {
  const hostileTree = (mode: string, name: string, content: string) => {
    const blob = repository.object('blob', content);
    const tree = repository.tree([{ mode, name, id: blob }]);
    return repository.packOf([tree, blob]);
  };

  test('a tree with .git in any disguise: refused, by object and rule', async () => {
    const blob = repository.object('blob', 'x');
    const inner = repository.tree([{ mode: '100644', name: 'config', id: blob }]);
    for (const name of ['.git', '.GIT', 'git~1', '.g\u200cit', '.git ', '.git...', '..']) {
      const tree = repository.tree([{ mode: '40000', name, id: inner }]);
      const pack = repository.packOf([tree, inner, blob]);
      await refused('pack-fsck-failed', new RegExp(`^object ${tree}: (hasDotgit|hasDotdot)`), pack);
    }
  });

  test('a .gitmodules that runs commands on clone: refused', async () => {
    const url = hostileTree('100644', '.gitmodules', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=evil\n');
    await refused('pack-fsck-failed', /gitmodulesUrl/, url);
    const name = hostileTree('100644', '.gitmodules', '[submodule "../../x"]\n\tpath = x\n\turl = https://e.org/x\n');
    await refused('pack-fsck-failed', /gitmodulesName/, name);
    const update = hostileTree('100644', '.gitmodules', '[submodule "x"]\n\turl = https://e.org\n\tupdate = !evil\n');
    await refused('pack-fsck-failed', /gitmodulesUpdate/, update);
    await refused('pack-fsck-failed', /gitmodulesParse/, hostileTree('100644', '.gitmodules', '[submodule'));
  });

  test('a bad .gitmodules blob sent first, its tree in a later push: refused, although git printed success', async () => {
    const bad = repository.object('blob', '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=other\n');
    const objects = await db.push(db.newObjects(), repository.packOf([bad]));
    const tree = repository.tree([{ mode: '100644', name: '.gitmodules', id: bad }]);
    await refused('pack-fsck-failed', /./, repository.packOf([tree]), objects);
  });

  test('symbolic links where git reads a file: refused', async () => {
    for (const name of ['.gitmodules', '.gitattributes', '.gitignore', '.mailmap']) {
      await refused('pack-fsck-failed', /[sS]ymlink/, hostileTree('120000', name, '/etc/passwd'));
    }
  });

  test('a commit without an author, a tree in wrong order, a name with a slash: refused', async () => {
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

describe('attacks by packs', () => {
  const small = () => repository.pack([repository.commit({ a: `small ${Math.random()}` })]);

  test('a pack cut off anywhere: refused as broken', async () => {
    const pack = small();
    for (const length of [0, 3, 11, 12, 13, 40, pack.length - 21, pack.length - 20, pack.length - 1]) {
      await refused('pack-broken', /./, pack.subarray(0, length));
    }
  });

  test('a wrong checksum, or one changed byte: refused as broken', async () => {
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

  test('bytes after the pack: refused, although git ends well', async () => {
    await refused('pack-broken', /something follows the pack/, Buffer.concat([small(), Buffer.from('more')]));
    await refused('pack-broken', /something follows the pack/, Buffer.concat([rawPack([]), Buffer.from('x')]));
  });

  test('something else than a pack: refused before git is started', async () => {
    await refused('pack-broken', /not a pack/, Buffer.from('GIF89a is no pack at all'));
    const version = rawPack([]);
    version[7] = 4;
    await refused('pack-broken', /not a pack of version/, version);
  });

  test('a header of 2^32-1 objects, or one above the limit: refused before git is started', async () => {
    await refused('pack-too-many-objects', /4294967295 objects, at most 1000000/, rawPack([], 2 ** 32 - 1));
    await refused('pack-too-many-objects', /1000001/, rawPack([], 1_000_001));
    await refused('pack-broken', /./, rawPack([], 1_000_000));
  });

  test('more bytes than it may have: refused, at the limit and not before', async () => {
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

  test('a body that goes on for ever: read no further than the limit', async () => {
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

  test('a refused pack: the rest of its body is read, so that the client sees the answer', async () => {
    let ended = false;
    async function* body() {
      yield* once(rawPack([], 2 ** 32 - 1));
      for (let count = 0; count < 50; count += 1) yield new Uint8Array(65_536);
      ended = true;
    }
    await refused('pack-too-many-objects', /./, body());
    assert.ok(ended);
  });

  test('deltas without a base, on themselves or in a circle: refused as broken', async () => {
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

  test('a thin pack whose base is in a layer of another repository only: refused', async () => {
    const text = Array.from({ length: 400 }, (_, line) => `row ${line}`).join('\n');
    const first = repository.commit({ foreign: text });
    await db.push(db.newObjects(), repository.pack([first]));
    const second = repository.commit({ foreign: `${text}\nmore` });
    await refused('pack-broken', /base/, repository.pack([second, `^${first}`], { thin: true }));
  });

  test('an object that is not what refers to it says: refused', async () => {
    const blob = repository.object('blob', 'not a tree');
    const person = 'A <a@example.org> 1700000000 +0000';
    const commit = repository.object('commit', `tree ${blob}\nauthor ${person}\ncommitter ${person}\n\nx\n`);
    await refused('pack-fsck-failed', /./, repository.packOf([commit, blob]));
  });
});

describe('packs that are not connected', () => {
  test('a commit whose parent nobody has: refused, and names what is missing', async () => {
    const first = repository.commit({ gap: 'one' });
    const second = repository.commit({ gap: 'two' });
    const pack = repository.pack([second, `^${first}`]);
    const missing = new RegExp(`object ${first}|neither`);
    await refused('pack-not-connected', missing, pack);
  });

  test('a tree or a blob that is left out: refused', async () => {
    const commit = repository.commit({ left: 'out' });
    const tree = objectId(repository.line(['rev-parse', `${commit}^{tree}`]));
    await refused('pack-not-connected', /neither/, repository.packOf([tree]));
    await refused('pack-not-connected', /neither/, repository.packOf([commit]));
  });

  test('a push from a shallow clone: refused when the history is not there, taken when it is', async () => {
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
    const received = await taken(objects, shallow.pack([third, `^${second}`]));
    await received.discard();
  });

  test('an object of a push that is not committed: no other push may build on it', async () => {
    const first = repository.commit({ uncommitted: 'one' });
    const objects = db.newObjects();
    const waiting = await taken(objects, repository.pack([first]));
    const second = repository.commit({ uncommitted: 'two' });
    const received = await db.receive(objects, repository.pack([second, `^${first}`]));
    assert.equal('refused' in received && received.refused, 'pack-not-connected');
    await waiting.discard();
  });

  test('tags of tags, followed a thousand deep and no deeper', async () => {
    const blob = Buffer.from('deep');
    const entries = [rawEntry({ type: 'blob', bytes: blob })];
    const ids = [rawId('blob', blob)];
    for (let depth = 0; depth < 1_001; depth += 1) {
      const type = depth === 0 ? 'blob' : 'tag';
      const tagger = 'A <a@example.org> 1700000000 +0000';
      const tag = Buffer.from(`object ${ids[depth]}\ntype ${type}\ntag t\ntagger ${tagger}\n\nx\n`);
      entries.push(rawEntry({ type: 'tag', bytes: tag }));
      ids.push(rawId('tag', tag));
    }
    const received = await taken(db.newObjects(), rawPack(entries));
    const [deepest, tooDeep] = await received.tips([objectId(ids[1_000] ?? ''), objectId(ids[1_001] ?? '')]);
    assert.deepEqual(deepest?.peeled, { id: ids[0], type: 'blob' });
    assert.equal(tooDeep, null);
    await received.discard();
  });
});

describe('costly packs', () => {
  test('a small pack that unfolds to more than git may hold: refused in bounded time and memory', async () => {
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
