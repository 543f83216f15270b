/** Entries of trees, found in their bytes as git finds them, and large trees in turns. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { entryOfName, entryOfObject, treePage } from '../../../../adapters/git/packs/tree-entries.ts';
import type { TreeEntry } from '../../../../core/git/objects.ts';
import { objectId } from '../../../../core/kernel/ids.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';

const EMPTY_TREE = objectId('4b825dc642cb6eb9a060e54bf8d69288fbee4904');
const atOnce = async (): Promise<void> => undefined;

async function entriesOf(bytes: Buffer): Promise<readonly TreeEntry[]> {
  const { items, total } = await treePage(bytes, { offset: 0, limit: 1_000 }, atOnce);
  assert.equal(total, items.length);
  return items;
}

describe('the entries of a tree', () => {
  const folder = temporaryFolder('tree-entries');
  const repository = testRepository(join(folder.path, 'repository'));
  afterAll(() => folder.remove());

  test('reads odd modes of old trees as git does, and never as anything else', async () => {
    const other = repository.object('blob', 'odd');
    for (const mode of [
      '0',
      '000000',
      '020000',
      '140000',
      '150000',
      '170000',
      '40755',
      '120777',
      '100664',
      '0100644',
    ]) {
      const tree = repository.tree([{ mode, name: 'odd', id: other }]);
      const [shown = ''] = repository.line(['ls-tree', tree]).split(' ');
      const [entry] = await entriesOf(repository.git(['cat-file', 'tree', tree]));
      if (shown === '100644') assert.match(entry?.mode ?? '', /^100/, mode);
      else assert.equal(entry?.mode, shown, mode);
    }
  });

  test('reads a tree with every mode, and a name that is not UTF-8', async () => {
    const blob = repository.object('blob', 'x');
    const commit = repository.commit({ a: '4' });
    const tree = repository.tree([
      { mode: '100644', name: 'a', id: blob },
      { mode: '100755', name: 'b', id: blob },
      { mode: '120000', name: 'c', id: blob },
      { mode: '160000', name: 'd', id: commit },
      { mode: '40000', name: 'e', id: EMPTY_TREE },
    ]);
    const entries = await entriesOf(repository.git(['cat-file', 'tree', tree]));
    const listed = entries.map(({ mode, id, name }) => `${mode} ${Buffer.from(name)} ${id}`);
    assert.deepEqual(listed, [
      `100644 a ${blob}`,
      `100755 b ${blob}`,
      `120000 c ${blob}`,
      `160000 d ${commit}`,
      `040000 e ${EMPTY_TREE}`,
    ]);
    const raw = Buffer.concat([Buffer.from('100644 \xff\xfe\0', 'latin1'), Buffer.from(blob, 'hex')]);
    assert.deepEqual([...((await entriesOf(raw))[0]?.name ?? [])], [0xff, 0xfe]);
    assert.equal((await entriesOf(raw.subarray(0, -1))).length, 0);
  });

  test('are not found in bytes that are no tree', async () => {
    for (const text of [
      '',
      '\n',
      'tree',
      'tree \n',
      '100644 a',
      '100644 a\0short',
      '\0\xff',
      ' '.repeat(50),
      '\0'.repeat(19),
    ]) {
      assert.deepEqual(await entriesOf(Buffer.from(text, 'latin1')), [], JSON.stringify(text));
    }
  });
});

describe('a tree of 200,000 entries', () => {
  const COUNT = 200_000;
  const idOf = (index: number): string => index.toString(16).padStart(40, '0');
  const bytes = Buffer.concat(
    Array.from({ length: COUNT }, (_, index) =>
      Buffer.concat([Buffer.from(`100644 ${String(index).padStart(6, '0')}\0`), Buffer.from(idOf(index), 'hex')]),
    ),
  );
  let turns = 0;
  const counted = async (): Promise<void> => void (turns += 1);

  test('is paged in turns, and only the page becomes objects', async () => {
    turns = 0;
    const page = await treePage(bytes, { offset: 150_000, limit: 2 }, counted);
    assert.deepEqual(
      [page.items.map(({ name, id }) => [Buffer.from(name).toString(), id]), page.total],
      [
        [
          ['150000', idOf(150_000)],
          ['150001', idOf(150_001)],
        ],
        COUNT,
      ],
    );
    assert.ok(turns >= 10, `${turns} turns`);
    assert.deepEqual(await treePage(bytes, { offset: COUNT, limit: 2 }, counted), { items: [], total: COUNT });
  });

  test('is searched for a name, or for an object, in turns', async () => {
    turns = 0;
    assert.equal((await entryOfName(bytes, Buffer.from('199999'), counted))?.id, idOf(199_999));
    assert.equal((await entryOfObject(bytes, objectId(idOf(199_999)), counted))?.id, idOf(199_999));
    assert.ok(turns >= 20, `${turns} turns`);
    for (const name of ['', '19999', '1999990', '200000']) {
      assert.equal(await entryOfName(bytes, Buffer.from(name), counted), null, name);
    }
    assert.equal(await entryOfObject(bytes, objectId(idOf(COUNT)), counted), null);
    const submodule = Buffer.concat([Buffer.from('160000 m\0'), Buffer.from(idOf(7), 'hex')]);
    assert.equal(await entryOfObject(submodule, objectId(idOf(7)), counted), null);
  });
});
