/** Recursive pages of trees: as git lists them, and of trees that hold more than anybody can list. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { MIB } from '../../../../core/kernel/byte-units.ts';
import { OBJECT_ID_BYTES, type ObjectId } from '../../../../core/kernel/ids.ts';
import { TREE_PATH_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import type { ObjectReader } from '../../../../core/ports/object-database.ts';
import {
  pageBelow,
  TREE_BYTES_READ_MAX,
  TREE_ENTRIES_MAX,
  TREE_ENTRIES_READ_MAX,
} from '../../../../core/use-cases/reading/tree-page.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { createMemoryObjects, type MemoryObjects } from '../../../support/memory/object-database.ts';

const UNHURRIED = { signal: new AbortController().signal, nextTurn: async () => undefined };

function readerOf(objects: MemoryObjects): Promise<ObjectReader> {
  // Objects in memory are the same in every repository.
  return objects.database.open({} as Parameters<MemoryObjects['database']['open']>[0]);
}

async function codeOf(reader: ObjectReader, root: ObjectId, offset: number, limit: number): Promise<string | number> {
  const found = await pageBelow(reader, root, { offset, limit }, UNHURRIED);
  return 'refused' in found ? found.refused.code : found.items.length;
}

describe('A recursive page of a tree', () => {
  test('holds what git lists, in its order, wherever the page begins', async (context) => {
    const at = await startGitReading();
    context.onTestFinished(() => at.close());
    const names = ['a', 'a.txt', 'a/b', 'a/b.c', 'a/b/c/d', 'a-b/x', 'z', 'ä/ö', 'a/b/c0', 'src/1/2/3', 'src/1.5'];
    const files = Object.fromEntries(
      names.filter((name) => !names.some((other) => other.startsWith(`${name}/`))).map((name) => [name, name]),
    );
    const commit = at.git.commit(files);
    const { id, accountId, owned, entity } = await at.push({ 'refs/heads/main': commit });
    const { layers, shrinkEpoch, keptSinceEpoch } = entity.state;
    const place = { account: accountId, storageBucketId: owned.storageBucketId };
    const reader = await at.database.database.open({
      ...{ repository: id, place, revision: entity.revision, shrinkEpoch, keptSinceEpoch, layers },
    });
    context.onTestFinished(() => reader.close());
    const root = at.git.line(['rev-parse', `${commit}^{tree}`]) as ObjectId;
    const listed = at.git.git(['ls-tree', '-r', '-t', '-z', root]).toString().split('\0').slice(0, -1);
    const lines: string[] = [];
    for (let offset = 0, hasMore = true; hasMore; offset += 3) {
      const page = await pageBelow(reader, root, { offset, limit: 3 }, UNHURRIED);
      assert.ok(!('refused' in page));
      hasMore = page.hasMore;
      for (const { mode, id: entry, path } of page.items) {
        lines.push(`${mode} ${mode === '040000' ? 'tree' : 'blob'} ${entry}\t${Buffer.from(path).toString()}`);
      }
    }
    assert.deepEqual(lines, listed);
  });

  test(`ends after ${TREE_ENTRIES_MAX} entries, also where few objects hold any number of them`, async () => {
    const objects = createMemoryObjects();
    let bomb = objects.tree({ file: ['100644', objects.blob('x')] });
    for (let depth = 0; depth < 20; depth += 1) {
      const inner = bomb;
      bomb = objects.tree(
        Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`d${index}`, ['040000', inner] as const])),
      );
    }
    const reader = await readerOf(objects);
    assert.equal(await codeOf(reader, bomb, TREE_ENTRIES_MAX - 10, 10), 10);
    assert.equal(await codeOf(reader, bomb, TREE_ENTRIES_MAX - 10, 11), 'tree-too-large');
  });

  test('reads no more entries than its bound, whatever stands beside the folders', async () => {
    const objects = createMemoryObjects();
    const blob = objects.blob('x');
    /** A folder of this many entries, of which the first is the folder below. */
    const above = (below: ObjectId, entries: number): ObjectId =>
      objects.rawTree([
        { name: Buffer.from('0'), mode: '040000', id: below },
        ...Array.from({ length: entries - 1 }, (_, index) => {
          return { name: Buffer.from(`f${String(index).padStart(6, '0')}`), mode: '100644', id: blob };
        }),
      ]);
    const wide = TREE_ENTRIES_READ_MAX / 4;
    const leaf = objects.tree({});
    const fits = [1, 2, 3, 4].reduce((below) => above(below, wide), leaf);
    const reader = await readerOf(objects);
    // Each folder is read no further than the page's end, so the page ends as late as it may.
    const [offset, limit] = [TREE_ENTRIES_MAX - 10, 10];
    assert.equal(await codeOf(reader, fits, offset, limit), limit);
    assert.equal(await codeOf(reader, above(fits, 1), offset, limit), 'tree-too-large');
  });

  // The attack: folders within folders, each beside a name that takes megabytes and that no page comes to.
  test(`reads no more than ${TREE_BYTES_READ_MAX / MIB} MiB of trees`, async () => {
    const objects = createMemoryObjects();
    const [wide, blob] = [4 * MIB, objects.blob('x')];
    /** A folder of this many bytes, whose first entry is the folder below. */
    const above = (below: ObjectId, bytes: number): ObjectId => {
      const padding = bytes - '40000 0\0'.length - '100644 \0'.length - 2 * OBJECT_ID_BYTES;
      return objects.rawTree([
        { name: Buffer.from('0'), mode: '040000', id: below },
        { name: Buffer.alloc(padding, 'z'), mode: '100644', id: blob },
      ]);
    };
    const leaf = objects.tree({});
    const folders = TREE_BYTES_READ_MAX / wide;
    const fits = Array<number>(folders).fill(wide).reduce(above, leaf);
    const reader = await readerOf(objects);
    assert.equal(await codeOf(reader, fits, 0, folders), folders);
    assert.equal(await codeOf(reader, above(fits, wide), 0, folders + 1), 'tree-too-large');
  });

  test(`goes as deep as paths of ${TREE_PATH_BYTES_MAX} bytes, and no deeper`, async () => {
    const objects = createMemoryObjects();
    // `ff/d/d/…/f`, where each `d/` takes two bytes.
    const folders = (TREE_PATH_BYTES_MAX - 'ff/f'.length) / 2;
    let deep = objects.tree({ f: ['100644', objects.blob('x')] });
    for (let depth = 0; depth < folders; depth += 1) deep = objects.tree({ d: ['040000', deep] });
    const reader = await readerOf(objects);
    const below = (name: string) => codeOf(reader, objects.tree({ [name]: ['040000', deep] }), folders + 1, 10);
    assert.deepEqual([await below('ff'), await below('fff')], [1, 'tree-too-large']);
  });

  test('ends when its reader leaves', async () => {
    const objects = createMemoryObjects();
    const blob = objects.blob('x');
    const wide = objects.tree(
      Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`f${index}`, ['100644', blob] as const])),
    );
    const reader = await readerOf(objects);
    const gone = { ...UNHURRIED, signal: AbortSignal.abort(new Error('gone')) };
    await assert.rejects(pageBelow(reader, wide, { offset: 0, limit: 1_000 }, gone), /gone/);
  });
});
