/** What git grep prints, read as matches with the lines around them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { type CodeMatch, GREP_LINE_BYTES_MAX, readGrep } from '../../../core/git/grep-lines.ts';
import { temporaryFolder, testRepository } from '../../support/git.ts';

const GREP = ['grep', '--threads=1', '--no-color', '--full-name', '-n', '--column', '-z', '-I', '-C2', '-F', '-e'];

describe('The output of git grep', () => {
  const folder = temporaryFolder('grep-lines');
  const repository = testRepository(join(folder.path, 'repository'));
  afterAll(() => folder.remove());

  const output = (files: Readonly<Record<string, string | Buffer>>, text: string, path?: string): Buffer => {
    const commit = repository.commit(files, { branch: `b${(count += 1)}` });
    return repository.git([...GREP, text, repository.line(['rev-parse', `${commit}:${path ?? ''}`])]);
  };
  let count = 0;
  const read = (bytes: Buffer, chunkBytes: number, matchesMax = 1_000): readonly CodeMatch[] => {
    const reading = readGrep(matchesMax);
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      if (!reading.add(bytes.subarray(at, at + chunkBytes))) break;
    }
    return reading.end();
  };
  const shown = (matches: readonly CodeMatch[]) =>
    matches.map(({ path, line, text, before, after }) => [
      Buffer.from(path).toString(),
      line,
      text,
      before.join('|'),
      after.join('|'),
    ]);

  test('holds each matching line with two before and two after it, read in chunks of any size', () => {
    const bytes = output(
      { 'a.txt': '1\n2\n3 foo\n4\nfoo 5\n6\n7\n8\n9 foo', 'b/c.txt': 'foo\r\n--\nlast\n', none: 'bar\n' },
      'foo',
    );
    const expected = [
      ['a.txt', 3, '3 foo', '1|2', '4|foo 5'],
      ['a.txt', 5, 'foo 5', '3 foo|4', '6|7'],
      ['a.txt', 9, '9 foo', '7|8', ''],
      ['b/c.txt', 1, 'foo', '', '--|last'],
    ];
    for (const chunkBytes of [1, 7, bytes.length]) assert.deepEqual(shown(read(bytes, chunkBytes)), expected);
  });

  test('is read right whatever names and lines look like', () => {
    const hostile = { '--\nname': 'x\n--\nfoo\n12\n', '-e': 'foo\n', 'colon:1:2': '3foo\n', '"q"': '12\nfoo\n' };
    assert.deepEqual(shown(read(output(hostile, 'foo'), 3)), [
      ['"q"', 2, 'foo', '12', ''],
      ['--\nname', 3, 'foo', 'x|--', '12'],
      ['-e', 1, 'foo', '', ''],
      ['colon:1:2', 1, '3foo', '', ''],
    ]);
  });

  test('of one blob has no path', () => {
    const bytes = output({ 'a.txt': 'one\nfoo\n' }, 'foo', 'a.txt');
    assert.deepEqual(shown(read(bytes, 5)), [['', 2, 'foo', 'one', '']]);
  });

  // The attack: a file that is one line of megabytes, with a match at its end.
  test('keeps of a long line what is around the match, and whole characters', () => {
    const long = 'ä'.repeat(1_000_000);
    const [match] = read(output({ 'long.txt': `${long}foo${long}\n${long}\n` }, 'foo'), 64 * 1_024);
    assert.ok(match !== undefined);
    assert.match(match.text, /^…ä+fooä+…$/);
    assert.ok(Buffer.byteLength(match.text) <= GREP_LINE_BYTES_MAX + 6, match.text);
    assert.match(match.after[0] ?? '', /^ä+…$/);
    const fitting = 'x'.repeat(GREP_LINE_BYTES_MAX - 3);
    const [whole] = read(output({ 'long.txt': `foo${fitting}\n` }, 'foo'), 1_000);
    assert.equal(whole?.text, `foo${fitting}`);
    const [cut] = read(output({ 'long.txt': `foo${fitting}x\n` }, 'foo'), 1_000);
    assert.equal(cut?.text, `foo${fitting}…`);
  });

  test('is read up to one match more than wanted', () => {
    const bytes = output({ 'a.txt': 'foo\n'.repeat(10) }, 'foo');
    const reading = readGrep(9);
    assert.equal(reading.add(bytes), false);
    assert.deepEqual([reading.end().length, reading.end().at(-1)?.after.length], [9, 1]);
    assert.equal(readGrep(10).add(bytes), true);
  });
});
