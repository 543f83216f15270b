/** The parser of what git blame prints: streams that arrive in pieces, paths of all bytes, and its bounds. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { BLAME_LINES_MAX, BLAME_PATHS_BYTES_MAX, type Blame, createBlameParser } from '../../../core/git/blame.ts';
import { DIFF_PATH_BYTES_MAX } from '../../../core/kernel/limits.ts';

const [A, B, C] = ['a', 'b', 'c'].map((digit) => digit.repeat(40));

interface Printed {
  readonly commit: string | undefined;
  readonly first: number;
  readonly count: number;
  /** The form in which git quotes it. */
  readonly path?: string;
  /** The commit and the path, as git quotes it. */
  readonly previous?: string;
  readonly author?: string;
}

function output(groups: readonly Printed[]): Buffer {
  const texts = groups.map(({ commit, first, count, path = 'file', previous, author = 'A' }) => {
    const before = previous === undefined ? '' : `previous ${previous}\n`;
    const person = `author ${author}\nauthor-mail <a@b>\nauthor-time 1\nsummary filename not-a-path\n`;
    return `${commit} 7 ${first} ${count}\n${person}${before}filename ${path}\n`;
  });
  return Buffer.from(texts.join(''), 'latin1');
}

interface Parsing {
  readonly size?: number;
  readonly end?: 'whole' | 'cut';
}

function parse(bytes: Buffer, { size = 65_536, end = 'whole' }: Parsing = {}): Blame {
  const parser = createBlameParser();
  for (let at = 0; at < bytes.length; at += size) if (!parser.add(bytes.subarray(at, at + size))) break;
  return parser.end(end);
}

function rangesOf({ ranges }: Blame): unknown[] {
  return ranges.map(({ start, count, origin }) => [
    start,
    count,
    origin.commit,
    Buffer.from(origin.path).toString('latin1'),
  ]);
}

describe('The parser of git blame', () => {
  test('puts groups in the order of lines, and neighbours of one commit and path together, from pieces of any size', () => {
    const bytes = output([
      { commit: B, first: 3, count: 1, previous: `${A} old` },
      { commit: A, first: 5, count: 2 },
      { commit: A, first: 1, count: 2, path: 'old' },
      { commit: B, first: 4, count: 1, previous: `${A} old` },
    ]);
    const whole = parse(bytes);
    assert.deepEqual(rangesOf(whole), [
      [1, 2, A, 'old'],
      [3, 2, B, 'file'],
      [5, 2, A, 'file'],
    ]);
    const previous = whole.ranges.map(({ origin }) => origin.previous?.commit ?? null);
    assert.deepEqual([previous, whole.origins.length, whole.complete], [[null, A, null], 3, true]);
    for (const size of [1, 2, 3, 7, 64]) assert.deepEqual(parse(bytes, { size }), whole, `in pieces of ${size}`);
  });

  test('ends before the first line that is not known, and says so', () => {
    const bytes = output([
      { commit: A, first: 1, count: 2 },
      { commit: B, first: 4, count: 1 },
    ]);
    const blame = parse(bytes, { end: 'cut' });
    assert.deepEqual([rangesOf(blame), blame.complete], [[[1, 2, A, 'file']], false]);
    const none = parse(output([{ commit: A, first: 2, count: 1 }]), { end: 'cut' });
    assert.deepEqual([none.ranges, none.complete], [[], false]);
  });

  test('reads the bytes of paths that git quotes', () => {
    const bytes = output([
      { commit: A, first: 1, count: 1, path: '"d\\374\\201\\001 \\"q\\" \\\\ \\a\\b\\t\\n\\v\\f\\r"' },
      { commit: B, first: 2, count: 1, path: ' filename "x', previous: `${A} "\\303\\251 previous"` },
    ]);
    const { ranges } = parse(bytes);
    assert.deepEqual(
      ranges.map(({ origin }) => [...origin.path].map((byte) => String.fromCharCode(byte)).join('')),
      ['d\u00fc\u0081\u0001 "q" \\ \u0007\b\t\n\v\f\r', ' filename "x'],
    );
    assert.equal(Buffer.from(ranges[1]?.origin.previous?.path ?? []).toString(), '\u00e9 previous');
  });

  test('takes no name or message of a commit for anything else, however long it is', () => {
    const author = `${B} 1 1 1`;
    const bytes = output([{ commit: A, first: 1, count: 1, author: 'x'.repeat(5 * DIFF_PATH_BYTES_MAX) }]);
    assert.deepEqual(rangesOf(parse(bytes)), [[1, 1, A, 'file']]);
    assert.deepEqual(rangesOf(parse(output([{ commit: A, first: 1, count: 1, author }]))), [[1, 1, A, 'file']]);
  });

  test('keeps as many lines as the limit, and says that there is one more', () => {
    const most = parse(output([{ commit: A, first: 1, count: BLAME_LINES_MAX }]));
    assert.deepEqual([rangesOf(most), most.complete], [[[1, BLAME_LINES_MAX, A, 'file']], true]);
    const more = parse(output([{ commit: A, first: 1, count: BLAME_LINES_MAX + 1 }]));
    assert.deepEqual([rangesOf(more), more.complete], [[[1, BLAME_LINES_MAX, A, 'file']], false]);
  });

  // The attack: a file that each commit moves to another path of 64 KiB.
  test('keeps paths up to the limit of their bytes, each once, and ends at one more', () => {
    const length = BLAME_PATHS_BYTES_MAX / 32;
    const pathOf = (index: number): string => String(index).padStart(length, 'x');
    const groups = Array.from({ length: 64 }, (_, index) => {
      return { commit: A, first: index + 1, count: 1, path: pathOf(index % 32) };
    });
    const most = parse(output(groups));
    assert.deepEqual([most.ranges.length, most.complete], [64, true]);
    const more = parse(output([...groups, { commit: C, first: 65, count: 1, path: 'y' }]));
    assert.deepEqual([more.ranges.length, more.complete], [64, false]);
  });

  test('ends at a path that is too long to be read', () => {
    const path = `"${'\\001'.repeat(DIFF_PATH_BYTES_MAX + 50)}"`;
    const blame = parse(
      output([
        { commit: A, first: 1, count: 1 },
        { commit: B, first: 2, count: 1, path },
      ]),
    );
    assert.deepEqual([rangesOf(blame), blame.complete], [[[1, 1, A, 'file']], false]);
  });

  test('throws at what git never prints', () => {
    for (const text of ['fatal: no such path\n', `${A} 1 1\n`, `${A} 1 1 1\nprevious x file\n`]) {
      assert.throws(() => parse(Buffer.from(text)), TypeError);
    }
  });
});
