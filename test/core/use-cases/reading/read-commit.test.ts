/** One commit and what it changed, on a repository of the real git. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ChangedFile, Diff } from '../../../../core/git/diff/diff.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import { readCommit, type WantedCommit } from '../../../../core/use-cases/reading/read-commit.ts';
import { DIFF_SPAN_MS } from '../../../../core/use-cases/reading/read-diff.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;
const TREE_OF_FIVE = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`file-${index}`, `${index}\n`]));

describe('A commit', () => {
  let reading: GitReading;
  let root: ObjectId;

  beforeAll(async () => {
    reading = await startGitReading();
    root = reading.git.commit({ ...TREE_OF_FIVE, text: lines(1, 30), 'folder/deep/er': 'x\n' }, { message: 'Root\n' });
    await reading.push({ 'refs/heads/main': root });
  });
  afterAll(() => reading.close());

  const read = async (id: string, more: Partial<WantedCommit> = {}) =>
    readCommit({ ...reading.node, knownDiffs: new Map() }, await reading.current(), { id, signal, ...more });
  const diffOf = async (id: string, more: Partial<WantedCommit> = {}): Promise<Diff> =>
    accepted(await read(id, more)).diff;
  /** Commits on a branch of its own, pushes it, and returns what the commit changed. */
  const changed = async (branch: string, files: Parameters<typeof reading.git.commit>[0]): Promise<Diff> => {
    const id = reading.git.commit(files, { branch, parents: [root] });
    await reading.push({ [`refs/heads/${branch}`]: id });
    return diffOf(id);
  };

  test('without parents is compared with the empty tree', async () => {
    const { commit, diff } = accepted(await read(root));
    assert.deepEqual([commit.id, commit.message, commit.parents], [root, 'Root\n', []]);
    assert.deepEqual(diff.files.map(pathOf), [
      ...['file-0', 'file-1', 'file-2', 'file-3', 'file-4', 'folder/deep/er', 'text'],
    ]);
    assert.ok(diff.files.every(({ status, before }) => status === 'added' && before === null));
    assert.deepEqual([diff.files.at(-1)?.additions, diff.filesTotal, diff.truncated], [30, 7, []]);
  });

  test('shows each changed line with its numbers, in hunks', async () => {
    const text = lines(1, 30).replace('line 4\n', 'line four\nand a half\n').replace('line 28\n', '');
    const { files } = await changed('hunks', { text });
    assert.deepEqual(files.map(pathOf), ['text']);
    const [file] = files;
    assert.deepEqual([file?.status, file?.additions, file?.deletions, file?.cut], ['modified', 2, 2, false]);
    assert.deepEqual(
      file?.hunks.map(({ oldStart, oldLines, newStart, newLines }) => [oldStart, oldLines, newStart, newLines]),
      [
        [1, 7, 1, 8],
        [25, 6, 26, 5],
      ],
    );
    const [first] = file?.hunks ?? [];
    assert.deepEqual(
      first?.lines
        .map(({ kind, oldNumber, newNumber, text: shown }) => [kind, oldNumber, newNumber, shown])
        .slice(2, 7),
      [
        ['context', 3, 3, 'line 3'],
        ['deleted', 4, null, 'line 4'],
        ['added', null, 4, 'line four'],
        ['added', null, 5, 'and a half'],
        ['context', 5, 6, 'line 5'],
      ],
    );
  });

  test('with two parents is compared with the first', async () => {
    const side = reading.git.commit({ side: 's\n' }, { branch: 'merged-side', parents: [root] });
    const main = reading.git.commit({ main: 'm\n' }, { branch: 'merged-main', parents: [root] });
    const merge = reading.git.commit({ side: 's\n' }, { branch: 'merged', parents: [main, side] });
    await reading.push({ 'refs/heads/merged': merge });
    assert.deepEqual((await diffOf(merge)).files.map(pathOf), ['side']);
  });

  test('that changes nothing has no files', async () => {
    const empty = reading.git.commit({}, { branch: 'empty', parents: [root] });
    await reading.push({ 'refs/heads/empty': empty });
    assert.deepEqual(await diffOf(empty), { files: [], filesTotal: 0, truncated: [] });
  });

  test('names what was deleted, renamed, made executable, linked or nested', async () => {
    const { git } = reading;
    const base = git.commit(
      { moved: lines(1, 20), script: '#!/bin/sh\n', plain: 'plain\n', gone: 'gone\n' },
      {
        branch: 'kinds',
        parents: [root],
      },
    );
    git.git(['read-tree', base]);
    const link = git.object('blob', 'text');
    git.git(['update-index', '--add', '--cacheinfo', `120000,${link},plain`]);
    git.git(['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},module`]);
    git.git(['update-index', '--chmod=+x', 'script']);
    git.git(['update-index', '--force-remove', 'gone', 'moved']);
    const moved = git.object('blob', lines(1, 20).replace('line 7\n', 'seven\n'));
    git.git(['update-index', '--add', '--cacheinfo', `100644,${moved},new/place`]);
    const id = git.line(['commit-tree', git.line(['write-tree']), '-p', base, '-m', 'kinds']) as ObjectId;
    await reading.push({ 'refs/heads/kinds': id });
    const { files } = await diffOf(id);
    const shown = files.map((file) => [
      pathOf(file),
      file.status,
      file.previousPath === null ? null : Buffer.from(file.previousPath).toString(),
      file.before?.mode ?? null,
      file.after?.mode ?? null,
      file.additions,
      file.deletions,
    ]);
    assert.deepEqual(shown, [
      ['gone', 'deleted', null, '100644', null, 0, 1],
      ['module', 'added', null, null, '160000', 1, 0],
      ['new/place', 'renamed', 'moved', '100644', '100644', 1, 1],
      ['plain', 'typechange', null, '100644', '120000', 1, 1],
      ['script', 'modified', null, '100644', '100755', 0, 0],
    ]);
    assert.deepEqual(files[1]?.hunks[0]?.lines[0]?.text, `Subproject commit ${'1'.repeat(40)}`);
    assert.equal(files[3]?.hunks[1]?.lines[0]?.ended, false, 'a link has no line feed');
  });

  test('shows binary files without lines, and says which side lacks the last line feed', async () => {
    const { files } = await changed('binary', { 'a.bin': Buffer.from([1, 0, 2]), text: lines(1, 30).trimEnd() });
    const [binary, text] = files;
    assert.deepEqual([binary?.binary, binary?.additions, binary?.hunks, binary?.cut], [true, null, [], false]);
    assert.deepEqual(
      text?.hunks[0]?.lines.slice(-2).map(({ kind, ended }) => [kind, ended]),
      [
        ['deleted', true],
        ['added', false],
      ],
    );
  });

  test('is read right whatever its paths and lines hold: quotes, line feeds, bytes, and text of diffs', async () => {
    const { git } = reading;
    const names = [
      'quo"te',
      'line\nfeed',
      'tab\tbed',
      'back\\slash',
      ' space ',
      '-dash',
      ':(glob)*',
      'a -> b',
      'naïve',
    ];
    const hostile =
      'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- gone\n++ came\nBinary files a and b differ\n\\ No\n';
    const blob = git.object('blob', hostile);
    const entries = [...names.map((name) => ({ mode: '100644', name: Buffer.from(name), id: blob }))];
    entries.push({ mode: '100644', name: Buffer.from([0x66, 0xff, 0xfe]), id: blob });
    entries.sort((a, b) => Buffer.compare(a.name, b.name));
    const tree = git.object(
      'tree',
      Buffer.concat(
        entries.map(({ mode, name, id }) =>
          Buffer.concat([Buffer.from(`${mode} `), name, Buffer.from([0]), Buffer.from(id, 'hex')]),
        ),
      ),
    );
    const id = git.line(['commit-tree', tree, '-m', 'hostile']) as ObjectId;
    await reading.push({ 'refs/heads/hostile': id });
    const { files, filesTotal } = await diffOf(id);
    assert.equal(filesTotal, entries.length);
    assert.deepEqual(
      files.map(({ path }) => Buffer.from(path)),
      entries.map(({ name }) => name),
    );
    for (const file of files) {
      assert.equal(file.additions, 8);
      const shown = file.hunks.flatMap((hunk) => hunk.lines.map(({ kind, text }) => `${kind} ${text}`));
      assert.deepEqual(
        shown,
        hostile
          .trimEnd()
          .split('\n')
          .map((line) => `added ${line}`),
      );
    }
  });

  // The attack: push a secret by mistake, delete the branch, and hope. Whoever learned the id asks for the page.
  test('that no current ref reaches is not found, and neither is what is no id of a commit', async () => {
    const secret = reading.git.commit({ secret: 'hunter2\n' }, { branch: 'secret', parents: [root] });
    await reading.push({ 'refs/heads/secret': secret });
    assert.equal((await diffOf(secret)).files.length, 1);
    await reading.push({ 'refs/heads/secret': null });
    assert.equal(codeOf(await read(secret)), 'ref-not-found');
    const tree = reading.git.line(['rev-parse', `${root}^{tree}`]);
    for (const id of [tree, 'main', 'HEAD', root.slice(0, 6), '--output=/tmp/x', '', '0'.repeat(40), 'f'.repeat(40)]) {
      assert.equal(codeOf(await read(id)), 'ref-not-found', id);
    }
    for (const id of [root.toUpperCase(), root.slice(0, 12)]) {
      assert.equal(accepted(await read(id)).commit.id, root, id);
    }
  });

  test('says which bound cut its diff, and counts what it does not show', async () => {
    const files = await diffOf(root, { shown: { bounds: { files: 3 } } });
    assert.deepEqual([files.files.length, files.filesTotal, files.truncated], [3, 7, ['files']]);
    const few = await diffOf(root, { shown: { bounds: { fileLines: 29 } } });
    const text = few.files.at(-1);
    assert.deepEqual(
      [few.truncated, text?.additions, text?.cut, text?.hunks[0]?.lines.length],
      [['lines'], 30, true, 29],
    );
    assert.deepEqual((await diffOf(root, { shown: { bounds: { fileLines: 30 } } })).truncated, []);
    const none = await diffOf(root, { shown: { bounds: { keptBytes: 0 } } });
    assert.deepEqual(none.truncated, ['bytes']);
    assert.ok(none.files.every(({ hunks, cut, additions }) => hunks.length === 0 && cut && additions !== null));
    const unread = await diffOf(root, { shown: { bounds: { readBytes: 10 } } });
    assert.deepEqual(unread.truncated, ['bytes']);
  });

  test('shows its files although the time for its lines is up', async () => {
    const spans: number[] = [];
    const repository = await reading.current();
    const objects = {
      open: async (committed: Parameters<typeof reading.node.objects.open>[0]) => {
        const reader = await reading.node.objects.open(committed);
        const diff: typeof reader.history.diff = async function* (...given) {
          const [, , { spanMs }] = given;
          spans.push(spanMs);
          for await (const chunk of reader.history.diff(...given)) {
            yield chunk.subarray(0, Buffer.from(chunk).indexOf('@@'));
            throw new ObjectDatabaseError('reading-too-costly', 'git diff-tree ended with timeout');
          }
        };
        return { ...reader, history: { ...reader.history, diff } };
      },
    };
    const { diff } = accepted(
      await readCommit({ ...reading.node, objects, knownDiffs: new Map() }, repository, { id: root, signal }),
    );
    assert.deepEqual([diff.files.length, diff.filesTotal, diff.truncated], [7, 7, ['time']]);
    assert.ok(diff.files.every(({ additions, cut }) => additions === null && cut));
    assert.deepEqual(spans, [DIFF_SPAN_MS]);
  });

  test('ends its git process with the request', async () => {
    const abort = new AbortController();
    abort.abort(new Error('The client left'));
    await assert.rejects(read(root, { signal: abort.signal }), /The client left/);
  });
});

function lines(first: number, last: number): string {
  let text = '';
  for (let number = first; number <= last; number += 1) text += `line ${number}\n`;
  return text;
}

function pathOf({ path }: ChangedFile): string {
  return Buffer.from(path).toString();
}
