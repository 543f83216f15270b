/** The packed paths of a tree: as git lists them, within their bounds, and the best match first. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  FILE_LIST_BYTES_MAX,
  FILE_LIST_PATH_BYTES_MAX,
  FILE_LIST_PATHS_MAX,
  type FileList,
  filesUpTo,
  findInList,
  startFileList,
} from '../../../core/git/file-list.ts';

const ID = 'a'.repeat(40);
const record = (path: string | Buffer, mode = '100644'): Buffer =>
  Buffer.concat([Buffer.from(`${mode} blob ${ID}\t`), Buffer.from(path), Buffer.from([0])]);

function listOf(paths: readonly (string | Buffer)[]): FileList {
  const making = startFileList();
  for (const path of paths) assert.equal(making.add(record(path)), true);
  return making.end();
}

const nextTurn = async (): Promise<void> => undefined;
const ALL = { offset: 0, limit: 1_000_000 };

async function found(list: FileList, text: string, page = ALL): Promise<string[]> {
  const { items } = await findInList(list, text, page, nextTurn);
  return items.map(({ path }) => Buffer.from(path).toString());
}

describe('A list of files', () => {
  test('finds nothing but the paths that hold the text, in any case, the name before its folders', async () => {
    const list = listOf([
      'docs/main/readme.md',
      'lib/domain.ts',
      'lib/main.ts',
      'lib/main',
      'src/main-loop.ts',
      'src/the-main.ts',
      'MAIN.md',
      'other.ts',
      'xmainx/y',
    ]);
    assert.deepEqual(await found(list, 'main'), [
      'lib/main',
      'MAIN.md',
      'lib/main.ts',
      'src/main-loop.ts',
      'src/the-main.ts',
      'lib/domain.ts',
      'docs/main/readme.md',
      'xmainx/y',
    ]);
    assert.deepEqual(await found(list, 'lib/main'), ['lib/main', 'lib/main.ts']);
    assert.deepEqual((await found(list, 'MAIN')).at(0), 'MAIN.md');
    assert.deepEqual(await found(list, 'no such'), []);
    assert.deepEqual(await found(list, 'main\0MAIN'), []);
  });

  test('has all paths in git’s order without a text, with their kinds', async () => {
    const making = startFileList();
    for (const [path, mode] of [
      ['a', '100644'],
      ['b/link', '120000'],
      ['b/module', '160000'],
      ['run', '100755'],
      ['old', '100664'],
    ] as const) {
      making.add(record(path, mode));
    }
    const list = making.end();
    const { items, total } = await findInList(list, '', ALL, nextTurn);
    assert.deepEqual(
      items.map(({ path, kind }) => [Buffer.from(path).toString(), kind]),
      [
        ['a', 'file'],
        ['b/link', 'symlink'],
        ['b/module', 'submodule'],
        ['run', 'file'],
        ['old', 'file'],
      ],
    );
    assert.deepEqual([total, list.count, list.files], [5, 5, 3]);
    assert.deepEqual(
      ['a', 'b/link', 'run', 'old', 'none'].map((path) => filesUpTo(list, Buffer.from(path))),
      [1, 1, 2, 3, 0],
    );
  });

  test('finds letters of other scripts in any case, and paths that are not UTF-8', async () => {
    const names = ['ΟΔΟΣ/ΣΑΣ.txt', 'Ärger', 'İ.txt', 'line\nfeed'];
    const list = listOf([...names, Buffer.from('caf\xe9', 'latin1')]);
    assert.deepEqual(await found(list, 'οδος/σας'), ['ΟΔΟΣ/ΣΑΣ.txt']);
    // The last letter of the text is not the last one of a word in the path.
    assert.deepEqual(await found(list, 'ΣΑΣ'), ['ΟΔΟΣ/ΣΑΣ.txt']);
    assert.deepEqual(await found(list, 'ΟΔΟΣ/Σ'), ['ΟΔΟΣ/ΣΑΣ.txt']);
    assert.deepEqual(await found(list, 'äRG'), ['Ärger']);
    assert.deepEqual(await found(list, 'İ'), ['İ.txt']);
    assert.deepEqual(await found(list, 'e\nf'), ['line\nfeed']);
    assert.equal((await findInList(list, 'caf', ALL, nextTurn)).items[0]?.path.at(-1), 0xe9);
  });

  test('holds each path that contains the text once on all pages together, over many parts', async () => {
    const paths = Array.from({ length: 50_000 }, (_, index) => `folder-${index % 97}/sub/file-${index}.ts`);
    const list = listOf(paths);
    for (const text of ['7', 'file-1', 'folder-13', '']) {
      const pages: string[] = [];
      for (let offset = 0; ; offset += 999) {
        const page = await found(list, text, { offset, limit: 999 });
        if (page.length === 0) break;
        pages.push(...page);
      }
      assert.deepEqual(pages, await found(list, text), text);
      assert.deepEqual(pages.toSorted(), paths.filter((path) => path.includes(text)).toSorted(), text);
    }
  });

  test('lets others have the event loop while it is searched, however short the paths are', async () => {
    for (const folder of ['some/folder/with/a/long/name/', 'n']) {
      const list = listOf(Array.from({ length: 20_000 }, (_, index) => `${folder}${index}`));
      let turns = 0;
      await findInList(list, 'n', ALL, async () => {
        turns += 1;
      });
      assert.ok(turns >= 5, `${turns} turns`);
    }
  });

  test('is read from chunks that end anywhere', async () => {
    const bytes = Buffer.concat([record('one/two'), record('ä'), record('three', '120000')]);
    const whole = await findInList(listOf(['one/two', 'ä', 'three']), '', ALL, nextTurn);
    const making = startFileList();
    for (const byte of bytes) making.add(Buffer.from([byte]));
    const { items } = await findInList(making.end(), '', ALL, nextTurn);
    assert.deepEqual(
      items.map(({ path }) => Buffer.from(path)),
      whole.items.map(({ path }) => Buffer.from(path)),
    );
  });

  // The attack: a tree of some kilobytes that names billions of files.
  test('ends beyond its bounds of paths and bytes, and of the bytes of one path', () => {
    const holds = (path: string, count: number): boolean => {
      const making = startFileList();
      const many = Buffer.concat(Array.from({ length: 1_000 }, () => record(path)));
      for (let left = count; left > 0; left -= 1_000) {
        const chunk = left >= 1_000 ? many : Buffer.concat(Array.from({ length: left }, () => record(path)));
        if (!making.add(chunk)) return false;
      }
      return true;
    };
    assert.deepEqual([holds('f', FILE_LIST_PATHS_MAX), holds('f', FILE_LIST_PATHS_MAX + 1)], [true, false]);
    const long = 'x'.repeat(8_192);
    const fitting = FILE_LIST_BYTES_MAX / long.length;
    assert.deepEqual([holds(long, fitting), holds(long, fitting + 1)], [true, false]);
    const longest = 'x'.repeat(FILE_LIST_PATH_BYTES_MAX);
    assert.deepEqual([holds(longest, 1), holds(`${longest}x`, 1)], [true, false]);
  });
});
