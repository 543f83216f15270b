/** Who brought the lines of files, compared with `git blame --line-porcelain`. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createKnownAnswers } from '../../../../apps/front-door/known-answers.ts';
import { BLAME_LINES_MAX, type Blame, type BlameRange } from '../../../../core/git/blame.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { CONTENTS_FILE_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import {
  BLAME_SPAN_MS,
  type BlamedFile,
  blameFile,
  rangesOnPage,
  type WantedBlame,
} from '../../../../core/use-cases/reading/blame-file.ts';
import { PAGE_PATHS_BYTES_MAX } from '../../../../core/use-cases/reading/paths-on-page.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;

describe('Who brought the lines of a file', () => {
  let reading: GitReading;
  let known = createKnownAnswers();
  let searches = 0;

  beforeAll(async () => {
    reading = await startGitReading();
  });
  afterAll(() => reading.close());

  const opening = (blame?: ObjectReader['history']['blame']) => ({
    open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
      const reader = await reading.node.objects.open(committed);
      const history: ObjectReader['history'] = {
        ...reader.history,
        blame: (...given) => {
          searches += 1;
          return (blame ?? reader.history.blame)(...given);
        },
      };
      return { ...reader, history };
    },
  });
  const blameOf = async (path: string | Buffer, more: Partial<WantedBlame> = {}, objects = opening()) => {
    const bytes = Buffer.from(path);
    const names =
      bytes.length === 0
        ? []
        : bytes
            .toString('latin1')
            .split('/')
            .map((name) => Buffer.from(name, 'latin1'));
    const wanted: WantedBlame = { ref: null, path: { names, folder: false }, shown: () => null, signal, ...more };
    return blameFile({ ...known, objects }, await reading.current(), wanted);
  };
  /** The commit and the path of each line. */
  const linesOf = ({ blame }: BlamedFile): string[] =>
    blame.ranges.flatMap(({ count, origin }) =>
      Array.from({ length: count }, () => `${origin.commit} ${Buffer.from(origin.path)}`),
    );
  const expected = (ref: string, path: string): string[] => {
    const text = reading.git.line(['-c', 'core.quotePath=false', 'blame', '--line-porcelain', ref, '--', path]);
    const commits = [...text.matchAll(/^([0-9a-f]{40}) \d+ \d+/gm)].map(([, id]) => id);
    const paths = [...text.matchAll(/^filename (.*)$/gm)].map(([, name]) => name);
    return commits.map((id, index) => `${id} ${paths[index]}`);
  };
  const numbers = (count: number, changed: Readonly<Record<number, string>> = {}): string =>
    Array.from({ length: count }, (_, index) => `${changed[index + 1] ?? `line ${index + 1}`}\n`).join('');

  test('is what git blame says, through changes, renames and merges, and each range runs on from the one before', async () => {
    const { git } = reading;
    const first = git.commit({ 'old/name': numbers(30), other: 'x\n' });
    const changed = git.commit({ 'old/name': numbers(30, { 3: 'three', 20: 'twenty' }) });
    const moved = git.commit({ 'old/name': null, file: numbers(30, { 3: 'three', 20: 'twenty' }) });
    const side = git.commit(
      { file: numbers(30, { 3: 'three', 20: 'twenty', 29: 'side' }) },
      { branch: 'side', parents: [moved] },
    );
    const main = git.commit({ file: numbers(31, { 1: 'one', 3: 'three', 20: 'twenty' }) }, { parents: [moved] });
    const tip = git.commit(
      { file: numbers(31, { 1: 'one', 3: 'three', 20: 'twenty', 29: 'side' }) },
      { parents: [main, side] },
    );
    await reading.push({ 'refs/heads/main': tip });
    const found = accepted(await blameOf('file'));
    assert.deepEqual(linesOf(found), expected('main', 'file'));
    const { ranges, complete } = found.blame;
    assert.deepEqual([found.commit, complete], [tip, true]);
    let next = 1;
    for (const { start, count } of ranges) {
      assert.equal(start, next);
      next += count;
    }
    const commits = new Set(ranges.map(({ origin }) => origin.commit));
    assert.deepEqual(commits, new Set([main, first, changed, side]));
    const twenty = ranges.find(({ start, count }) => start <= 20 && 20 < start + count)?.origin;
    assert.deepEqual([twenty?.commit, twenty?.previous?.commit], [changed, first]);
    assert.equal(Buffer.from(twenty?.previous?.path ?? []).toString(), 'old/name');
    const earlier = accepted(await blameOf('old/name', { ref: changed }));
    assert.deepEqual(linesOf(earlier), expected(changed, 'old/name'));
  });

  test('is kept for its commit, path and blob, so that it is looked for once', async () => {
    const before = searches;
    known = createKnownAnswers();
    const both = await Promise.all([blameOf('file'), blameOf('file')]);
    assert.deepEqual(accepted(both[0] as BlamedFile).blame, accepted(both[1] as BlamedFile).blame);
    await blameOf('file');
    assert.equal(searches, before + 1);
    await blameOf('other');
    assert.equal(searches, before + 2);
  });

  test('comes with the commits of the lines that are shown, and with no others', async () => {
    const { blame, commits } = accepted(await blameOf('file', { shown: () => ({ from: 3, to: 4 }) }));
    const shown = blame.ranges.filter(({ start, count }) => start <= 4 && start + count > 3);
    assert.deepEqual(new Set(commits.keys()), new Set(shown.map(({ origin }) => origin.commit)));
    for (const [id, row] of commits) assert.match(row.message, /^Commit at \d+$/, id);
  });

  test('comes with the start of a message, since thousands may stand beside the lines', async () => {
    const message = `Loud\n\n${'x'.repeat(10_000)}`;
    const tip = reading.git.commit({ loud: 'a\n' }, { branch: 'loud', parents: [], message });
    await reading.push({ 'refs/heads/loud': tip });
    const { commits } = accepted(await blameOf('loud', { ref: 'loud', shown: () => ({ from: 1, to: 1 }) }));
    const shown = commits.get(tip)?.message ?? '';
    assert.ok(shown.startsWith('Loud\n') && shown.length < 1_000, `${shown.length} characters`);
  });

  test('is right for a file whose last line has no end, for a link, and for a file without lines', async () => {
    const { git } = reading;
    const [text, link, empty] = [git.object('blob', 'a\nb'), git.object('blob', 'text'), git.object('blob', '')];
    const tree = git.tree([
      { mode: '100644', name: 'empty', id: empty },
      { mode: '120000', name: 'link', id: link },
      { mode: '100755', name: 'text', id: text },
    ]);
    const tip = objectId(git.line(['commit-tree', tree, '-m', 'kinds']));
    await reading.push({ 'refs/heads/kinds': tip });
    const counts = [];
    for (const path of ['text', 'link', 'empty']) {
      const { blame } = accepted(await blameOf(path, { ref: 'kinds' }));
      counts.push([blame.ranges.reduce((sum, { count }) => sum + count, 0), blame.complete]);
    }
    assert.deepEqual(counts, [
      [2, true],
      [1, true],
      [0, true],
    ]);
  });

  // The attack: names that are options, revisions, pathspecs or words of a shell to whoever hands them on.
  test('is right for paths that look like options and patterns, or are no text', async () => {
    const { git } = reading;
    const names = ['--incremental', '-L1,1', ':(glob)*', '*', '$(id)', '`id`', '%s\\101', "it's", '"q"', 'a b', 'end\n']
      .concat(['line\nfeed', 'return\r', '^main', 'HEAD', '\\'])
      .map((name) => Buffer.from(name));
    names.push(Buffer.from([0xff, 0xfe, 0x81, 0x88, 0x01]), Buffer.from('\u00e9'));
    const entries = names.toSorted(Buffer.compare).map((name) => {
      const blob = git.object('blob', Buffer.concat([name, Buffer.from(' x')]));
      return Buffer.concat([Buffer.from('100644 '), name, Buffer.from([0]), Buffer.from(blob, 'hex')]);
    });
    const tip = objectId(git.line(['commit-tree', git.object('tree', Buffer.concat(entries)), '-m', 'odd']));
    await reading.push({ 'refs/heads/odd': tip });
    for (const name of names) {
      const { blame } = accepted(await blameOf(name, { ref: 'odd' }));
      const paths = blame.origins.map(({ path }) => Buffer.from(path).toString('latin1'));
      assert.deepEqual(paths, [name.toString('latin1')]);
      assert.equal(blame.origins[0]?.commit, tip);
    }
  });

  test('is refused for what is no file, and for refs and paths that there are not', async () => {
    const { git } = reading;
    const large = git.object('blob', Buffer.alloc(CONTENTS_FILE_BYTES_MAX + 1));
    const folder = git.tree([{ mode: '100644', name: 'large', id: large }]);
    const tree = git.tree([
      { mode: '040000', name: 'folder', id: folder },
      { mode: '160000', name: 'module', id: objectId('1'.repeat(40)) },
    ]);
    const tip = objectId(git.line(['commit-tree', tree, '-m', 'no files']));
    await reading.push({ 'refs/heads/none': tip, 'refs/tags/tree': tree });
    const code = async (path: string, more: Partial<WantedBlame> = {}) =>
      codeOf(await blameOf(path, { ref: 'none', ...more }));
    assert.equal(await code(''), 'path-not-a-file');
    assert.equal(await code('folder'), 'path-not-a-file');
    assert.equal(await code('module'), 'path-not-a-file');
    assert.equal(await code('folder/large'), 'file-too-large');
    assert.equal(await code('nothing'), 'path-not-found');
    assert.equal(await code('x', { path: null }), 'path-not-found');
    assert.equal(await code('folder', { ref: 'nothing' }), 'ref-not-found');
    assert.equal(await code('folder', { ref: 'refs/tags/tree' }), 'ref-not-a-commit');
  });

  test('says that it is not whole when the time is up, and is looked for again', async () => {
    known = createKnownAnswers();
    const id = reading.git.line(['rev-parse', 'main']) as ObjectId;
    const spans = new Set<number>();
    const late = opening(async function* (_tip, _path, _lines, { spanMs }) {
      spans.add(spanMs);
      yield Buffer.from(`${id} 1 1 2\nfilename file\n${id} 4 4 1\nfilename file\n`);
      throw new ObjectDatabaseError('reading-too-costly', 'late');
    });
    const cut = accepted(await blameOf('file', {}, late));
    assert.deepEqual([linesOf(cut), cut.blame.complete], [[`${id} file`, `${id} file`], false]);
    assert.deepEqual([...spans], [BLAME_SPAN_MS]);
    assert.deepEqual(linesOf(accepted(await blameOf('file'))), expected('main', 'file'));
  });

  test('is looked for by the next reader when the one whose search it was has left', async () => {
    known = createKnownAnswers();
    const leaving = new AbortController();
    const objects = opening(async function* (_tip, _path, _lines, { signal: own }) {
      yield Buffer.alloc(0);
      if (own === leaving.signal) leaving.abort(new Error('The client left'));
      own.throwIfAborted();
      yield Buffer.from(`${'a'.repeat(40)} 1 1 1\nfilename file\n`);
    });
    const first = blameOf('file', { signal: leaving.signal }, objects);
    const second = blameOf('file', {}, objects);
    await assert.rejects(first, /The client left/);
    assert.deepEqual(linesOf(accepted(await second)), [`${'a'.repeat(40)} file`]);
  });

  test('asks git for one line more than the limit', async () => {
    known = createKnownAnswers();
    const asked: number[] = [];
    await blameOf(
      'file',
      {},
      opening(async function* (_tip, _path, lines) {
        asked.push(lines);
        yield Buffer.alloc(0);
      }),
    );
    assert.deepEqual(asked, [BLAME_LINES_MAX + 1]);
    known = createKnownAnswers();
  });

  test('comes in pages, whose paths have at most a number of bytes', () => {
    const range = (index: number, pathLength: number): BlameRange => {
      const origin = { commit: objectId('a'.repeat(40)), path: new Uint8Array(pathLength), previous: null };
      return { start: index + 1, count: 1, origin };
    };
    const blame = (lengths: readonly number[]): Blame => {
      const ranges = lengths.map((length, index) => range(index, length));
      return { ranges, origins: [], pathsBytes: 0, complete: true };
    };
    const half = PAGE_PATHS_BYTES_MAX / 2;
    const page = accepted(rangesOnPage(blame([1, half, half, 1]), { offset: 1, limit: 2 }));
    assert.deepEqual([page.items.map(({ start }) => start), page.total], [[2, 3], 4]);
    assert.equal(codeOf(rangesOnPage(blame([half, half + 1]), { offset: 0, limit: 2 })), 'page-paths-too-long');
    assert.equal(accepted(rangesOnPage(blame([half, half + 1]), { offset: 1, limit: 1 })).items.length, 1);
  });
});
