/** How much of a diff one page shows. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { diffView, FILES_SHOWN_MIN } from '../../../../apps/website/repositories/diff-view.ts';
import { PAGE_TEXT_BYTES_MAX, PAGE_WHOLE_BYTES_MAX } from '../../../../apps/website/repositories/limits.ts';
import type { ChangedFile } from '../../../../core/git/diff/diff.ts';

/** A new file of lines of these lengths. */
function fileOf(lengths: readonly number[]): ChangedFile {
  return fileWith(lengths.map((length) => 'x'.repeat(length)));
}

function fileWith(texts: readonly string[]): ChangedFile {
  const lines = texts.map((text, at) => ({
    ...({ kind: 'added', oldNumber: null, newNumber: at + 1, text } as const),
    ...{ guessed: false, cut: false, ended: true },
  }));
  const hunk = { oldStart: 0, oldLines: 0, newStart: 1, newLines: lines.length, heading: '', lines };
  return {
    ...({ status: 'modified', path: Buffer.from('a'), previousPath: null, before: null, after: null } as const),
    ...{ additions: lines.length, deletions: 0, binary: false, hunks: [hunk], cut: false },
  };
}

function shown(files: readonly ChangedFile[], query = '', beside = 0) {
  const visit = { url: new URL(`http://localhost/${query}`) };
  const diff = { files, filesTotal: files.length, truncated: [] };
  const markup = diffView({ visit }, () => '/', diff, { beside }).markup();
  return { files: markup.match(/<details/g)?.length ?? 0, lines: markup.match(/class=?"?added/g)?.length ?? 0, markup };
}

describe('A page of a diff', () => {
  test('lists the files that it has room for, and a few where it has room for fewer', () => {
    const files = Array.from({ length: 200 }, () => fileOf([]));
    const fileBytes = 602;
    for (const room of [0, FILES_SHOWN_MIN - 1, FILES_SHOWN_MIN, FILES_SHOWN_MIN + 1]) {
      const beside = PAGE_TEXT_BYTES_MAX - room * fileBytes;
      assert.equal(shown(files, '', beside).files, Math.max(room, FILES_SHOWN_MIN), `room for ${room}`);
    }
  });

  test('of one file alone shows its lines up to the weight of a long page, and not one byte more', () => {
    // The head of the lines, and each line, take as much beside their texts.
    const overheadBytes = 3 * 90;
    const whole = PAGE_WHOLE_BYTES_MAX - overheadBytes - 1;
    for (const [lengths, lines] of [
      [[whole, 1], 2],
      [[whole, 2], 1],
    ] as const) {
      const { lines: count, markup } = shown([fileOf(lengths)], '?file=0');
      assert.equal(count, lines);
      assert.equal(/More lines changed than are shown/.test(markup), lines === 1);
    }
  });

  test('shows carriage returns at line ends only where some lines have none', () => {
    assert.doesNotMatch(shown([fileWith(['one\r', 'two\r'])]).markup, /U\+000D/);
    assert.equal(shown([fileWith(['one\r', 'two'])]).markup.match(/U\+000D/g)?.length, 1);
    assert.equal(shown([fileWith(['o\rne\r', 'two\r'])]).markup.match(/U\+000D/g)?.length, 1);
  });
});
