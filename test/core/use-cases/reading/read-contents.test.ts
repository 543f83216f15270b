/** Contents at a path, their limits, and that nothing stays open. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { encodeUtf8 } from '../../../../core/git/utf8.ts';
import { CONTENTS_FILE_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import type { ContentsPath } from '../../../../core/use-cases/reading/entry-at-path.ts';
import {
  CONTENTS_BUFFERED_BYTES_MAX,
  CONTENTS_NAMES_BYTES_MAX,
  type FileBytes,
  readContents,
  readFile,
  SYMLINK_TARGET_BYTES_MAX,
} from '../../../../core/use-cases/reading/read-contents.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { startReading } from '../../../support/reading.ts';

const ALL = { offset: 0, limit: 1_000 };
const LARGE = CONTENTS_BUFFERED_BYTES_MAX + 1;

/** Parses a path as it is written. With a slash at its end only a folder is found. */
function pathOf(text: string): ContentsPath {
  const names = text.split('/').filter((name) => name !== '');
  return { names: names.map(encodeUtf8), folder: text === '' || text.endsWith('/') };
}

async function started() {
  const reading = await startReading();
  const { objects } = reading;
  const file = (content: string | Buffer) => ['100644', objects.blob(content)] as const;
  const src = objects.tree({ 'main.c': file('int main;\n') });
  const tree = objects.tree({
    'README.md': file('# Ä\n'),
    binary: file(Buffer.from([1, 0, 2])),
    held: file('t'.repeat(CONTENTS_BUFFERED_BYTES_MAX)),
    'large.txt': file('t'.repeat(LARGE)),
    'large.bin': file(Buffer.alloc(LARGE)),
    limit: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX)],
    beyond: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX + 1)],
    link: ['120000', objects.blob('src')],
    'link-at': ['120000', objects.blob('x'.repeat(SYMLINK_TARGET_BYTES_MAX))],
    'link-past': ['120000', objects.blob('x'.repeat(SYMLINK_TARGET_BYTES_MAX + 1))],
    module: ['160000', objects.commit({ tree: objects.tree({}), seconds: 9 })],
    src: ['040000', src],
    '..': file('a name like any other'),
  });
  const commit = objects.commit({ tree, seconds: 1 });
  const repository = await reading.push(await reading.repository('r'), { 'refs/heads/master': commit });
  const contents = (path: string, entries = ALL) =>
    readContents(reading.node, repository, { ref: null, path: pathOf(path), entries, judgeStreamed: true });
  const raw = (path: string) => readFile(reading.node, repository, { ref: null, path: pathOf(path) });
  return { reading, objects, repository, commit, tree, src, contents, raw };
}

async function bytesOf(content: FileBytes, range: { readonly start: number; readonly end: number } | null = null) {
  if (content.kind === 'held') return Buffer.from(content.bytes);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content.chunks(range)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe('Contents', () => {
  test('of a folder are its entries in the order of its tree, page by page', async () => {
    const { contents, commit, tree, src } = await started();
    const root = accepted(await contents(''));
    assert.ok(root.type === 'dir');
    assert.deepEqual(root.place, { names: [], ref: 'master', commit });
    assert.equal(root.id, tree);
    assert.equal(root.entries.total, 13);
    const shown = root.entries.items.map(({ name, type, sizeBytes }) => [
      Buffer.from(name).toString(),
      type,
      sizeBytes,
    ]);
    assert.deepEqual(shown.slice(0, 2), [
      ['..', 'file', 21],
      ['README.md', 'file', 5],
    ]);
    assert.deepEqual(shown.slice(-2), [
      ['module', 'submodule', null],
      ['src', 'dir', null],
    ]);
    const page = accepted(await contents('', { offset: 1, limit: 2 }));
    assert.ok(page.type === 'dir');
    assert.deepEqual(page.entries, { items: root.entries.items.slice(1, 3), total: 13 });
    const beyond = accepted(await contents('', { offset: 13, limit: 2 }));
    assert.ok(beyond.type === 'dir');
    assert.deepEqual(beyond.entries, { items: [], total: 13 });
    const below = accepted(await contents('src/'));
    assert.deepEqual([below.type, below.id], ['dir', src]);
  });

  test('of a page read the sizes of its own entries only', async () => {
    const { reading, repository } = await started();
    const asked: number[] = [];
    const objects: typeof reading.node.objects = {
      ...reading.node.objects,
      open: async (committed) => {
        const reader = await reading.node.objects.open(committed);
        return {
          ...reader,
          lookup: async (ids) => {
            asked.push(ids.length);
            return reader.lookup(ids);
          },
        };
      },
    };
    const wanted = { ref: null, path: pathOf(''), entries: { offset: 0, limit: 2 }, judgeStreamed: true };
    accepted(await readContents({ objects }, repository, wanted));
    assert.deepEqual(asked, [2]);
  });

  test('of a file state whether it is text, in memory up to the limit and streamed from one byte more', async () => {
    const { contents } = await started();
    for (const [path, kind, isText] of [
      ['README.md', 'held', true],
      ['binary', 'held', false],
      ['held', 'held', true],
      ['large.txt', 'streamed', true],
      ['large.bin', 'streamed', false],
    ] as const) {
      const file = accepted(await contents(path));
      assert.ok(file.type === 'file');
      assert.deepEqual([file.content.kind, file.isText], [kind, isText], path);
      assert.equal((await bytesOf(file.content)).length, file.sizeBytes);
      if (file.content.kind === 'streamed') file.content.close();
    }
  });

  test('of a link are its own text, cut to the longest target a link can have', async () => {
    const { contents } = await started();
    for (const [path, sizeBytes, shown] of [
      ['link', 3, 3],
      ['link-at', SYMLINK_TARGET_BYTES_MAX, SYMLINK_TARGET_BYTES_MAX],
      ['link-past', SYMLINK_TARGET_BYTES_MAX + 1, SYMLINK_TARGET_BYTES_MAX],
    ] as const) {
      const link = accepted(await contents(path));
      assert.ok(link.type === 'symlink');
      assert.deepEqual([link.sizeBytes, link.target.length], [sizeBytes, shown]);
    }
  });

  test("are found through the commit's trees only: no link is followed, no name is special", async () => {
    const { contents, reading } = await started();
    for (const path of ['nothing', 'link/main.c', 'module/x', 'README.md/', 'README.md/x', 'link/', 'src/..']) {
      assert.equal(codeOf(await contents(path)), 'path-not-found', path);
    }
    const dots = accepted(await contents('..'));
    assert.ok(dots.type === 'file' && dots.content.kind === 'held');
    assert.equal(Buffer.from(dots.content.bytes).toString(), 'a name like any other');
    assert.equal(reading.objects.openReaders(), 0);
  });

  test('are not found at a path that cannot name anything, after the ref was found', async () => {
    const { reading, repository } = await started();
    const ask = async (ref: string | null) =>
      codeOf(await readContents(reading.node, repository, { ref, path: null, entries: ALL, judgeStreamed: true }));
    assert.equal(await ask(null), 'path-not-found');
    assert.equal(await ask('nothing'), 'ref-not-found');
    const empty = await reading.repository('empty');
    const wanted = { ref: null, path: pathOf(''), entries: ALL, judgeStreamed: true };
    assert.equal(codeOf(await readContents(reading.node, empty, wanted)), 'repository-without-commits');
  });

  test('of 64 MiB are returned, and of one byte more refused, in both forms', async () => {
    const { contents, raw, reading } = await started();
    for (const read of [contents, raw]) {
      const limit = accepted(await read('limit'));
      assert.ok('content' in limit && limit.content.kind === 'streamed');
      assert.equal(limit.sizeBytes, CONTENTS_FILE_BYTES_MAX);
      limit.content.close();
      assert.equal(codeOf(await read('beyond')), 'file-too-large');
    }
    assert.equal(reading.objects.openReaders(), 0);
  });
});

describe('A folder', () => {
  test('whose names and paths take too much on one page is refused, and shown on smaller ones', async () => {
    const { reading, objects } = await started();
    const { node } = reading;
    // Two names fill the bound with their paths to the byte: `in/`, and each name twice.
    const nameBytes = (CONTENTS_NAMES_BYTES_MAX / 2 - 'in/'.length - 1) / 2;
    const file = ['100644', objects.blob('')] as const;
    const folderOf = (bytes: number) =>
      ['040000', objects.tree({ ['a'.repeat(bytes)]: file, ['b'.repeat(bytes)]: file })] as const;
    const tree = objects.tree({ in: folderOf(Math.floor(nameBytes)), by: folderOf(Math.ceil(nameBytes) + 1) });
    const commit = objects.commit({ tree, seconds: 1 });
    const repository = await reading.push(await reading.repository('long'), { 'refs/heads/master': commit });
    const read = (path: string, limit: number) =>
      readContents(node, repository, {
        ref: null,
        path: pathOf(path),
        entries: { offset: 0, limit },
        judgeStreamed: true,
      });
    assert.ok('entries' in accepted(await read('in', 2)));
    assert.equal(codeOf(await read('by', 2)), 'folder-names-too-long');
    assert.ok('entries' in accepted(await read('by', 1)));
  });
});

describe('A raw file', () => {
  test('is its bytes, whole or a range, and nothing of a large one is read before it is requested', async () => {
    const { reading, repository } = await started();
    let blobs = 0;
    const objects: typeof reading.node.objects = {
      ...reading.node.objects,
      open: async (committed) => {
        const reader = await reading.node.objects.open(committed);
        return {
          ...reader,
          blob: (id, range) => {
            blobs += 1;
            return reader.blob(id, range);
          },
        };
      },
    };
    const file = accepted(await readFile({ objects }, repository, { ref: null, path: pathOf('large.txt') }));
    assert.equal(blobs, 0);
    assert.equal((await bytesOf(file.content)).length, LARGE);
    assert.equal((await bytesOf(file.content, { start: 5, end: 8 })).toString(), 'ttt');
    assert.ok(file.content.kind === 'streamed');
    file.content.close();
  });

  test("may also be a link's own text, and never a folder or a submodule", async () => {
    const { raw, reading } = await started();
    assert.equal((await bytesOf(accepted(await raw('link')).content)).toString(), 'src');
    for (const path of ['', 'src', 'src/', 'module']) assert.equal(codeOf(await raw(path)), 'path-not-a-file', path);
    assert.equal(reading.objects.openReaders(), 0);
  });

  test('stays open until it is closed, and is closed if reading it fails', async () => {
    const { raw, reading, repository } = await started();
    const { content } = accepted(await raw('large.bin'));
    assert.equal(reading.objects.openReaders(), 1);
    assert.ok(content.kind === 'streamed');
    content.close();
    content.close();
    await Promise.resolve();
    assert.equal(reading.objects.openReaders(), 0);
    const objects: typeof reading.node.objects = {
      ...reading.node.objects,
      open: async (committed) => ({
        ...(await reading.node.objects.open(committed)),
        blob: () => {
          throw new Error('The disk is gone');
        },
      }),
    };
    await assert.rejects(readFile({ objects }, repository, { ref: null, path: pathOf('README.md') }));
    assert.equal(reading.objects.openReaders(), 0);
  });
});
