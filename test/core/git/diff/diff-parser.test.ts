/** The parser of git's diffs: its bounds, and streams that arrive in pieces. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Diff } from '../../../../core/git/diff/diff.ts';
import {
  createDiffParser,
  DIFF_BOUNDS,
  DIFF_FILE_LINES_MAX,
  DIFF_KEPT_BYTES_MAX,
  DIFF_LINE_BYTES_MAX,
  DIFF_PATHS_BYTES_MAX,
  DIFF_READ_BYTES_MAX,
  type DiffBounds,
} from '../../../../core/git/diff/diff-parser.ts';
import { DIFF_FILES_MAX, DIFF_PATH_BYTES_MAX } from '../../../../core/kernel/limits.ts';

const ZERO = '0'.repeat(40);
const BLOB = 'a'.repeat(40);

/** What git prints for added files with these lines. */
function output(files: readonly (readonly [path: string, lines: readonly string[]])[]): Buffer {
  const records = files.map(([path]) => `:000000 100644 ${ZERO} ${BLOB} A\0${path}\0`);
  const patches = files.map(([path, lines]) => {
    const head = `diff --git a/${path} b/${path}\nnew file mode 100644\nindex ${ZERO}..${BLOB}\n`;
    if (lines.length === 0) return head;
    return `${head}--- /dev/null\n+++ b/${path}\n@@ -0,0 +1,${lines.length} @@\n${lines.map((line) => `+${line}\n`).join('')}`;
  });
  return Buffer.from(`${records.join('')}\0${patches.join('')}`);
}

function parse(bytes: Buffer, options: { readonly size?: number; readonly bounds?: DiffBounds } = {}): Diff {
  const parser = createDiffParser(options.bounds ?? DIFF_BOUNDS);
  const size = options.size ?? 65_536;
  for (let at = 0; at < bytes.length; at += size) if (!parser.add(bytes.subarray(at, at + size))) break;
  return parser.end('whole');
}

const many = (count: number, line: string): string[] => Array.from({ length: count }, () => line);

describe('The parser of diffs', () => {
  test('reads the same from pieces of any size', () => {
    const bytes = output([
      ['a', ['one', 'tw\u00f6', '']],
      ['b/c', []],
      ['d', ['diff --git a/x b/x', '@@ -1 +1 @@']],
    ]);
    const whole = parse(bytes);
    assert.deepEqual(
      whole.files.map(({ additions }) => additions),
      [3, 0, 2],
    );
    for (const size of [1, 2, 3, 7, 64]) assert.deepEqual(parse(bytes, { size }), whole, `in pieces of ${size}`);
  });

  test('lists as many files as the limit, counts one more, and does not list it', () => {
    const files = (count: number) => Array.from({ length: count }, (_, index) => [`file-${index}`, ['x']] as const);
    const most = parse(output(files(DIFF_FILES_MAX)));
    assert.deepEqual([most.files.length, most.filesTotal, most.truncated], [DIFF_FILES_MAX, DIFF_FILES_MAX, []]);
    const more = parse(output(files(DIFF_FILES_MAX + 1)));
    assert.deepEqual(
      [more.files.length, more.filesTotal, more.truncated],
      [DIFF_FILES_MAX, DIFF_FILES_MAX + 1, ['files']],
    );
    assert.ok(more.files.every(({ additions }) => additions === 1));
  });

  test('lists files up to the limit of the bytes of their paths, counts the others, and lists none of them', () => {
    const long = (letter: string) => [letter.repeat(DIFF_PATH_BYTES_MAX), ['x']] as const;
    const count = DIFF_PATHS_BYTES_MAX / DIFF_PATH_BYTES_MAX;
    const most = Array.from({ length: count }, (_, index) => long(String.fromCharCode(65 + index)));
    const listed = parse(output(most));
    assert.deepEqual([listed.files.length, listed.filesTotal, listed.truncated], [count, count, []]);
    const more = parse(output([...most, ['z', ['x']], ['zz', ['x']]]));
    assert.deepEqual([more.files.length, more.filesTotal, more.truncated], [count, count + 2, ['files']]);
    assert.ok(more.files.every(({ additions }) => additions === 1));
  });

  test('shows as many lines of a file as the limit, and counts one more', () => {
    const most = parse(output([['a', many(DIFF_FILE_LINES_MAX, 'x')]]));
    assert.deepEqual([most.files[0]?.hunks[0]?.lines.length, most.truncated], [DIFF_FILE_LINES_MAX, []]);
    const more = parse(
      output([
        ['a', many(DIFF_FILE_LINES_MAX + 1, 'x')],
        ['b', ['y']],
      ]),
    );
    assert.deepEqual(
      more.files.map(({ additions, hunks, cut }) => [additions, hunks[0]?.lines.length, cut]),
      [
        [DIFF_FILE_LINES_MAX + 1, DIFF_FILE_LINES_MAX, true],
        [1, 1, false],
      ],
    );
    assert.deepEqual(more.truncated, ['lines']);
  });

  test('cuts a line at the limit of its bytes', () => {
    const { files } = parse(output([['a', ['x'.repeat(DIFF_LINE_BYTES_MAX), 'x'.repeat(DIFF_LINE_BYTES_MAX + 1)]]]));
    const lines = files[0]?.hunks[0]?.lines.map(({ text, cut }) => [text.length, cut]);
    assert.deepEqual(lines, [
      [DIFF_LINE_BYTES_MAX, false],
      [DIFF_LINE_BYTES_MAX, true],
    ]);
  });

  test('shows lines up to the limit of all their bytes, and counts the rest', () => {
    const line = 'x'.repeat(1_023);
    // With its mark each line takes 1,024 bytes.
    const count = DIFF_KEPT_BYTES_MAX / 1_024;
    const half = count / 2;
    const most = parse(
      output([
        ['a', many(half, line)],
        ['b', many(half, line)],
      ]),
    );
    assert.deepEqual(most.truncated, []);
    const more = parse(
      output([
        ['a', many(half, line)],
        ['b', many(half, line)],
        ['c', ['']],
      ]),
    );
    assert.deepEqual([more.truncated, more.files[2]?.additions, more.files[2]?.hunks], [['bytes'], 1, []]);
  });

  test('stops reading beyond the limit of bytes, and says that it counted no further', () => {
    const line = 'x'.repeat(1_022);
    const bytes = (extra: number) =>
      output([
        ['a', many(2_000, line)],
        ['b', many(Math.ceil(DIFF_READ_BYTES_MAX / 1_024), line)],
      ]).subarray(0, DIFF_READ_BYTES_MAX + extra);
    const read = parse(bytes(0), { bounds: { ...DIFF_BOUNDS, keptBytes: Infinity, fileLines: Infinity } });
    assert.deepEqual(read.truncated, []);
    const { files, truncated, filesTotal } = parse(bytes(1), {
      bounds: { ...DIFF_BOUNDS, keptBytes: Infinity, fileLines: Infinity },
    });
    assert.deepEqual([truncated, filesTotal], [['bytes'], 2]);
    assert.deepEqual(
      files.map(({ additions, cut }) => [additions, cut]),
      [
        [2_000, false],
        [null, true],
      ],
    );
  });

  test('takes a path as long as the limit, and stops at a longer one', () => {
    const most = parse(output([['p'.repeat(DIFF_PATH_BYTES_MAX), []]]));
    assert.deepEqual([most.files.length, most.truncated], [1, []]);
    const more = parse(
      output([
        ['a', []],
        ['p'.repeat(DIFF_PATH_BYTES_MAX + 1), []],
      ]),
    );
    assert.deepEqual([more.files.length, more.filesTotal, more.truncated], [1, null, ['bytes']]);
  });
});
