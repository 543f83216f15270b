/** Diffs of any size and of one file alone, read from real git. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Diff } from '../../../../core/git/diff/diff.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { readCommit } from '../../../../core/use-cases/reading/read-commit.ts';
import type { WantedDiff } from '../../../../core/use-cases/reading/read-diff.ts';
import { accepted } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const numbered = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, n) => `line ${from + n}\n`).join('');

describe('A diff of a page', () => {
  let reading: GitReading;
  let root: ObjectId;
  let tip: ObjectId;

  beforeAll(async () => {
    reading = await startGitReading();
    const first = { 'a.txt': numbered(1, 100), 'spaces.txt': 'a\nb\n', 'z.txt': 'z\n', 'gone.txt': 'gone' };
    const id = reading.git.commit(first, { message: 'Root\n' });
    root = id;
    tip = reading.git.commit(
      {
        ...{ 'a.txt': numbered(1, 100).replace('line 50\n', 'line fifty\n'), 'spaces.txt': 'a  \nb\n', 'z.txt': 'Z\n' },
        ...{ 'gone.txt': null, 'new.txt': numbered(1, 3_000), 'nul.bin': 'a\0b' },
      },
      { parents: [id], message: 'Tip\n' },
    );
    await reading.push({ 'refs/heads/main': tip });
  });
  afterAll(() => reading.close());

  const { signal } = new AbortController();
  async function diffOf(shown: WantedDiff, id = tip): Promise<Diff> {
    const context = { ...reading.node, knownDiffs: new Map() };
    return accepted(await readCommit(context, await reading.current(), { id, shown, signal })).diff;
  }
  const nameOf = ({ path }: Diff['files'][number]): string => Buffer.from(path).toString();
  const linesOf = ({ files: [file] }: Diff) => file?.hunks.flatMap(({ lines }) => lines) ?? [];

  test('leaves out files of which white space alone differs, and knows the lines of the others', async () => {
    const diff = await diffOf({ ignoresWhiteSpace: true });
    const found = diff.files.map((file) => [nameOf(file), file.additions, file.deletions, file.hunks.length]);
    assert.deepEqual(found, [
      ['a.txt', 1, 1, 1],
      ['gone.txt', 0, 1, 1],
      ['new.txt', 3_000, 0, 1],
      ['nul.bin', null, null, 0],
      ['spaces.txt', 0, 0, 0],
      ['z.txt', 1, 1, 1],
    ]);
  });

  test('counts the lines of files that it does not keep, also of those that it did not read', async () => {
    const few = await diffOf({ bounds: { changedLines: 10, partialFiles: false } });
    assert.deepEqual(
      few.files.map((file) => [nameOf(file), file.additions, file.cut, file.hunks.length]),
      [
        ['a.txt', 1, false, 1],
        ['gone.txt', 0, false, 1],
        ['new.txt', 3_000, true, 0],
        ['nul.bin', null, false, 0],
        ['spaces.txt', 1, false, 1],
        ['z.txt', 1, false, 1],
      ],
    );
    const unread = await diffOf({ countsAll: true, bounds: { readBytes: 10 } });
    assert.deepEqual(
      unread.files.map(({ additions }) => additions),
      [1, 0, 3_000, null, 1, 1],
    );
  });

  test('lists the files behind others, folded and counted', async () => {
    const { files, filesTotal } = await diffOf({ countsAll: true, bounds: { filesBefore: 4 } });
    assert.equal(filesTotal, 6);
    assert.deepEqual(
      files.map((file) => [nameOf(file), file.additions, file.cut]),
      [
        ['spaces.txt', 1, true],
        ['z.txt', 1, true],
      ],
    );
  });

  test('of one file alone has it whole, with as much context as is wanted', async () => {
    for (const [context, lines] of [
      [3, 8],
      [25, 52],
      [1_000, 101],
    ] as const) {
      const diff = await diffOf({ file: { index: 0, context } });
      assert.deepEqual([diff.files.length, diff.filesTotal, linesOf(diff).length], [1, 6, lines]);
      assert.deepEqual([diff.files[0]?.additions, diff.files[0]?.cut], [1, false]);
    }
    const spaces = await diffOf({ file: { index: 4, context: 3 }, ignoresWhiteSpace: true });
    assert.deepEqual([spaces.files.map(nameOf), linesOf(spaces)], [['spaces.txt'], []]);
    const beyond = await readCommit({ ...reading.node, knownDiffs: new Map() }, await reading.current(), {
      ...{ id: tip, signal, shown: { file: { index: 6, context: 3 } } },
    });
    assert.ok('refused' in beyond && beyond.refused.code === 'path-not-found');
  });

  test('of a new and of a deleted file alone has all its lines, from any of them on', async () => {
    const file = { index: 2, context: 3 };
    const bounds = { linesBefore: 2_990, fileLines: 5 };
    const part = await diffOf({ file, bounds });
    assert.deepEqual(
      linesOf(part).map(({ newNumber, text }) => [newNumber, text]),
      [2_991, 2_992, 2_993, 2_994, 2_995].map((number) => [number, `line ${number}`]),
    );
    assert.deepEqual([part.files[0]?.cut, part.files[0]?.additions], [true, 3_000]);
    const [gone] = linesOf(await diffOf({ file: { index: 1, context: 3 } }));
    assert.deepEqual([gone?.kind, gone?.oldNumber, gone?.text, gone?.ended], ['deleted', 1, 'gone', false]);
    const whole = await diffOf({ file }, root);
    assert.deepEqual(
      linesOf(whole).map(({ text }) => text),
      ['a', 'b'],
      'a root commit has no other side',
    );
    const binary = await diffOf({ file: { index: 3, context: 3 } });
    assert.deepEqual([binary.files[0]?.binary, linesOf(binary)], [true, []]);
  });
});
