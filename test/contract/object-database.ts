/**
 * The contract of `ObjectReader` (core/ports/object-database.ts), run on the adapter that calls git and on the
 * in-memory implementation that tests of the API use. Only the adapter receives packs and serves fetches.
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import type { ObjectReader, WalkOptions } from '../../core/ports/object-database.ts';
import { createMemoryObjects, type MemoryObjects } from '../support/memory/object-database.ts';

const ALL = { offset: 0, limit: 1_000 };

export interface OpenReader {
  readonly reader: ObjectReader;
  close(): Promise<void>;
}

const MISSING = objectId('2'.repeat(40));
const EMPTY_TREE = objectId('4b825dc642cb6eb9a060e54bf8d69288fbee4904');
const BIG = Buffer.alloc(50_000, 'abc');

/** Creates a history with a fork, a merge, a wrong clock and equal dates, and tags of a commit, a tag and a blob. */
function fill(objects: MemoryObjects) {
  const same = objects.blob('same\n');
  const big = objects.blob(BIG);
  const inner = objects.tree({ same: ['100644', same] });
  const first = objects.tree({
    big: ['100644', big],
    inner: ['040000', inner],
    // Git orders a folder as if its name ended with a slash, so `inner` comes after this file.
    'inner-file': ['100755', same],
    link: ['120000', same],
    'sub-module': ['160000', MISSING],
    é: ['100644', same],
  });
  const author = { name: 'Grace Hopper', email: 'grace@example.org', seconds: 900, offsetMinutes: -330 };
  const root = objects.commit({ tree: first, message: 'Root\n\nBody \u{1F600}\n', seconds: 1_000, author });
  const second = objects.tree({ inner: ['040000', inner] });
  const future = objects.commit({ tree: second, parents: [root], seconds: 9_000 });
  const left = objects.commit({ tree: second, parents: [future], seconds: 2_000, message: 'left\n' });
  const right = objects.commit({ tree: inner, parents: [root], seconds: 2_000, message: 'right\n' });
  const merge = objects.commit({ tree: second, parents: [right, left], seconds: 4_000, message: 'no newline' });
  const apart = objects.commit({ tree: objects.tree({}), seconds: 500, message: 'apart\n' });
  const tagger = { name: 'Ada', email: 'ada@example.org', seconds: 5_000, offsetMinutes: 60 };
  const tag = objects.tag(merge, 'v1', { tagger, message: 'Version 1\n' });
  const nested = objects.tag(tag, 'v1-again');
  const blobTag = objects.tag(same, 'blob');
  return { same, big, inner, first, second, root, future, left, right, merge, apart, tag, nested, blobTag };
}

/** Declares the suite; `open` is called once, after all objects were created. */
export function objectReaderContract(adapter: string, open: (objects: MemoryObjects) => Promise<OpenReader>): void {
  describe(`an object reader ${adapter}`, () => {
    const objects = createMemoryObjects();
    const ids = fill(objects);
    let reader: ObjectReader;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ reader, close } = await open(objects));
    });
    afterAll(async () => {
      reader.close();
      await close();
    });

    lookupContract(() => reader, ids);
    contentContract(() => reader, ids);
    walkContract(() => reader, ids);
  });
}

type Ids = ReturnType<typeof fill>;
type Reader = () => ObjectReader;

function lookupContract(reader: Reader, ids: Ids): void {
  test('returns type and size of objects, and null for a missing one', async () => {
    const found = await reader().lookup([ids.same, ids.big, ids.root, ids.merge, ids.tag, ids.blobTag, MISSING]);
    assert.deepEqual(
      found.map((info) => info?.type ?? null),
      ['blob', 'blob', 'commit', 'commit', 'tag', 'tag', null],
    );
    assert.deepEqual([found[0]?.id, found[0]?.sizeBytes, found[1]?.sizeBytes], [ids.same, 5, 50_000]);
    const written = [
      `tree ${ids.second}\nparent ${ids.right}\nparent ${ids.left}\nauthor Ada <ada@example.org> 4000 +0000`,
      'committer Ada <ada@example.org> 4000 +0000\n\nno newline',
    ];
    assert.equal(found[3]?.sizeBytes, written.join('\n').length);
    const tagged = `object ${ids.same}\ntype blob\ntag blob\n\nA tag\n`;
    assert.equal(found[5]?.sizeBytes, tagged.length);
    assert.deepEqual(await reader().lookup([EMPTY_TREE]), [{ id: EMPTY_TREE, type: 'tree', sizeBytes: 0 }]);
  });

  test('returns tips, and peels annotated tags to the object they lead to', async () => {
    const tips = await reader().tips([ids.merge, ids.tag, ids.nested, ids.blobTag, ids.same, ids.first, MISSING]);
    const merge = { id: ids.merge, type: 'commit' };
    assert.deepEqual(tips, [
      { ...merge, peeled: null },
      { id: ids.tag, type: 'tag', peeled: merge },
      { id: ids.nested, type: 'tag', peeled: merge },
      { id: ids.blobTag, type: 'tag', peeled: { id: ids.same, type: 'blob' } },
      { id: ids.same, type: 'blob', peeled: null },
      { id: ids.first, type: 'tree', peeled: null },
      null,
    ]);
  });
}

function contentContract(reader: Reader, ids: Ids): void {
  test('returns commits with all their fields, and null for objects that are no commit', async () => {
    const ada = { name: 'Ada', email: 'ada@example.org', offsetMinutes: 0 };
    assert.deepEqual(await reader().commit(ids.root), {
      ...{ id: ids.root, tree: ids.first, parents: [], message: 'Root\n\nBody \u{1F600}\n' },
      author: { name: 'Grace Hopper', email: 'grace@example.org', seconds: 900, offsetMinutes: -330 },
      committer: { ...ada, seconds: 1_000 },
    });
    const merge = await reader().commit(ids.merge);
    assert.deepEqual([merge?.parents, merge?.message], [[ids.right, ids.left], 'no newline']);
    for (const id of [ids.same, ids.first, ids.tag, MISSING]) assert.equal(await reader().commit(id), null, id);
    const several = await reader().commits([ids.left, MISSING, ids.same, ids.left]);
    assert.deepEqual(
      several.map((commit) => commit?.id ?? null),
      [ids.left, null, null, ids.left],
    );
  });

  test('returns tags with tagger and message, and null for objects that are no tag', async () => {
    const tagger = { name: 'Ada', email: 'ada@example.org', seconds: 5_000, offsetMinutes: 60 };
    assert.deepEqual(await reader().tag(ids.tag), { id: ids.tag, tagger, message: 'Version 1\n' });
    assert.deepEqual(await reader().tag(ids.nested), { id: ids.nested, tagger: null, message: 'A tag\n' });
    for (const id of [ids.same, ids.merge, MISSING]) assert.equal(await reader().tag(id), null, id);
  });

  test('returns trees in git’s order with six-digit modes, and null for objects that are no tree', async () => {
    const entries = await reader().tree(ids.first, ALL);
    assert.deepEqual(
      entries?.items.map(({ mode, name, id }) => [mode, Buffer.from(name).toString(), id]),
      [
        ['100644', 'big', ids.big],
        ['100755', 'inner-file', ids.same],
        ['040000', 'inner', ids.inner],
        ['120000', 'link', ids.same],
        ['160000', 'sub-module', MISSING],
        ['100644', 'é', ids.same],
      ],
    );
    assert.deepEqual(await reader().tree(EMPTY_TREE, ALL), { items: [], total: 0 });
    for (const id of [ids.same, ids.merge, ids.tag, MISSING]) assert.equal(await reader().tree(id, ALL), null, id);
  });

  test('returns the bytes of a blob, or a range of them that ends with the blob', async () => {
    const bytes = async (id: ObjectId, range?: { readonly start: number; readonly end: number }): Promise<Buffer> =>
      Buffer.concat(await Array.fromAsync(reader().blob(id, range)));
    assert.equal((await bytes(ids.same)).toString(), 'same\n');
    assert.ok((await bytes(ids.big)).equals(BIG));
    const ranges = [
      [0, 10],
      [10, 10],
      [49_990, 60_000],
      [12_345, 34_567],
    ] as const;
    for (const [start, end] of ranges) {
      assert.ok((await bytes(ids.big, { start, end })).equals(BIG.subarray(start, end)), `${start} to ${end}`);
    }
    await assert.rejects(bytes(MISSING));
    await assert.rejects(bytes(ids.merge));
  });
}

function walkContract(reader: Reader, ids: Ids): void {
  test('walks from commits and tags in the order of git log, without excluded commits', async () => {
    const { root, future, left, right, merge, apart, tag, nested } = ids;
    const walk = (include: readonly ObjectId[], exclude: readonly ObjectId[] = [], more: Partial<WalkOptions> = {}) =>
      Array.fromAsync(reader().walk({ include, exclude, ...more }));
    // Commits with the same date come in the order of the parents; one dated in the future comes after its child.
    const all = [merge, right, left, future, root];
    assert.deepEqual(await walk([merge]), all);
    assert.deepEqual(await walk([tag]), all);
    assert.deepEqual(await walk([nested, merge, right]), all);
    assert.deepEqual(await walk([apart, merge]), [...all, apart]);
    assert.deepEqual(await walk([merge], [right]), [merge, left, future]);
    assert.deepEqual(await walk([merge], [tag]), []);
    assert.deepEqual(await walk([merge], [], { skip: 1, limit: 2 }), [right, left]);
    assert.deepEqual(await walk([merge], [], { skip: 9 }), []);
    assert.deepEqual(await walk([merge], [], { limit: 0 }), []);
    assert.deepEqual([await reader().count(merge), await reader().count(apart)], [all.length, 1]);
  });

  test('finds that a commit is an ancestor of itself and of its descendants', async () => {
    const { root, left, right, merge, apart } = ids;
    const isAncestor = (of: ObjectId, descendant: ObjectId) => reader().isAncestor(of, descendant);
    assert.equal(await isAncestor(root, merge), true);
    assert.equal(await isAncestor(merge, merge), true);
    assert.equal(await isAncestor(merge, root), false);
    assert.equal(await isAncestor(left, right), false);
    assert.equal(await isAncestor(apart, merge), false);
  });

  test('finds the objects of every type that are reachable from tips', async () => {
    const { same, big, inner, first, second, root, right, left, merge, apart, tag, nested, blobTag } = ids;
    const candidates = [
      same,
      big,
      inner,
      first,
      second,
      root,
      right,
      left,
      merge,
      apart,
      tag,
      nested,
      blobTag,
      MISSING,
    ];
    const reached = async (tips: readonly ObjectId[]) =>
      (await reader().reachable(candidates, tips, tips.join(' '))).difference(new Set([EMPTY_TREE]));
    assert.deepEqual(await reached([right]), new Set([same, big, inner, first, root, right]));
    const ofMerge = [same, big, inner, first, second, root, right, left, merge];
    assert.deepEqual(await reached([nested]), new Set([...ofMerge, tag, nested]));
    assert.deepEqual(await reached([blobTag]), new Set([same, blobTag]));
    assert.deepEqual(await reached([apart]), new Set([apart]));
    assert.deepEqual(await reached([]), new Set());
  });
}
