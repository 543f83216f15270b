/** Lines of files that hold a text, as `git grep` finds them. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createKnownAnswers } from '../../../../apps/front-door/known-answers.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import {
  SEARCH_MATCHES_MAX,
  SEARCH_SPAN_MS,
  type SearchCodeContext,
  searchCode,
  type WantedSearch,
} from '../../../../core/use-cases/reading/search-code.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;
const PAGE = { offset: 0, limit: 2_000 };
const WHOLE = { names: [], folder: true };

describe('A search in code', () => {
  let reading: GitReading;
  let searches = 0;

  beforeAll(async () => {
    reading = await startGitReading();
  });
  afterAll(() => reading.close());

  const newNode = (parts: Partial<ObjectReader['search']> = {}): SearchCodeContext => {
    const open: SearchCodeContext['objects']['open'] = async (committed) => {
      const reader = await reading.node.objects.open(committed);
      const own = { ...reader.search, ...parts };
      const search: ObjectReader['search'] = {
        ...own,
        lines: (...given) => {
          searches += 1;
          return own.lines(...given);
        },
      };
      return { ...reader, search };
    };
    return { ...createKnownAnswers(), objects: { open } };
  };
  const search = async (node: SearchCodeContext, text: string, more: Partial<WantedSearch> = {}) => {
    const wanted = { ref: null, text, isRegex: false, path: WHOLE, page: PAGE, signal };
    return searchCode(node, await reading.current(), { ...wanted, ...more });
  };
  const found = async (...given: Parameters<typeof search>) => {
    const { matches, isComplete, filesSearched } = accepted(await search(...given));
    const items = matches.items.map(({ path, line, text }) => `${Buffer.from(path)}:${line}:${text}`);
    return { items, isComplete, filesSearched };
  };
  const path = (text: string) => ({ names: text.split('/').map((name) => Buffer.from(name)), folder: false });
  const push = async (files: Readonly<Record<string, string | Buffer>>, ref: string): Promise<ObjectId> => {
    const commit = reading.git.commit(files, { branch: ref, parents: [] });
    await reading.push({ [`refs/heads/${ref}`]: commit });
    return commit;
  };

  test('finds the lines of text files, and neither those of binary files nor of links', async () => {
    const { git } = reading;
    const commit = await push({ 'a.txt': 'one\nfoo\n', 'b/c.txt': 'Foo foo\n', binary: 'foo\0foo\n' }, 'kinds');
    const link = git.object('blob', 'foo');
    const tree = git.line(['ls-tree', commit]).split('\n');
    const linked = git.line(['mktree'], { input: `${[...tree, `120000 blob ${link}\tlink`].join('\n')}\n` });
    const tip = git.line(['commit-tree', linked, '-m', 'links']) as ObjectId;
    await reading.push({ 'refs/heads/links': tip });
    assert.deepEqual(await found(newNode(), 'foo', { ref: 'links' }), {
      items: ['a.txt:2:foo', 'b/c.txt:1:Foo foo'],
      isComplete: true,
      filesSearched: 3,
    });
    assert.deepEqual(await found(newNode(), 'foo', { ref: 'links', path: path('link') }), {
      ...{ items: [], isComplete: true, filesSearched: 0 },
    });
  });

  test('takes texts that look like options, patterns and several lines as they are', async () => {
    await push({ odd: '--all\n-e x\n.*\n(a\n$HOME\nü\n:(glob)*\n^abc\n' }, 'odd');
    const node = newNode();
    for (const [text, count] of [
      ...['--all', '-e x', '.*', '(a', '$HOME', 'ü', ':(glob)*', '^a'].map((one) => [one, 1] as const),
      ...['a\nü', 'x\0y', '--all\n'].map((none) => [none, 0] as const),
    ]) {
      const { items, isComplete } = await found(node, text, { ref: 'odd' });
      assert.deepEqual([items.length, isComplete], [count, true], text);
    }
  });

  test('below a path searches exactly this folder or file, whose name is no pattern', async () => {
    const files = { 'src/a.c': 'foo\n', 'src/*': 'foo\n', 'src2/a.c': 'foo\n', 'src.c': 'foo\n' };
    await push(files, 'paths');
    const node = newNode();
    const below = async (text: string) => (await found(node, 'foo', { ref: 'paths', path: path(text) })).items;
    assert.deepEqual(await below('src'), ['src/*:1:foo', 'src/a.c:1:foo']);
    assert.deepEqual(await below('src/*'), ['src/*:1:foo']);
    assert.deepEqual(await below('src.c'), ['src.c:1:foo']);
    for (const missing of ['s*', ':(glob)**', 'src/b.c', '--all']) {
      assert.equal(codeOf(await search(node, 'foo', { ref: 'paths', path: path(missing) })), 'path-not-found');
    }
    assert.equal(codeOf(await search(node, 'foo', { ref: 'paths', path: null })), 'path-not-found');
  });

  test('is not changed by attributes of the repository', async () => {
    await push({ 'a.txt': 'foo\n', '.gitattributes': '* binary -diff\n' }, 'attributes');
    assert.deepEqual((await found(newNode(), 'foo', { ref: 'attributes' })).items, ['a.txt:1:foo']);
  });

  test('by an expression is that of PCRE, and what is no expression is refused with the reason', async () => {
    await push({ 'a.txt': 'foo1\nfoo\nbar22\n' }, 'regex');
    const node = newNode();
    const regex = { ref: 'regex', isRegex: true } as const;
    assert.deepEqual((await found(node, '\\d+$', regex)).items, ['a.txt:1:foo1', 'a.txt:3:bar22']);
    assert.deepEqual((await found(node, '^(?!foo)', regex)).items, ['a.txt:3:bar22']);
    for (const [text, reason] of [
      ['(', 'missing closing parenthesis'],
      ["it's)", 'unmatched closing parenthesis'],
      ['[', 'missing terminating ] for character class'],
    ] as const) {
      const refused = await search(node, text, regex);
      assert.deepEqual('refused' in refused && refused.refused, { code: 'regex-invalid', reason });
    }
    assert.deepEqual((await found(node, '(\n)', regex)).items, []);
    assert.deepEqual((await found(node, 'a\0', regex)).items, []);
    const without = newNode({ regexFault: async () => ({ kind: 'unavailable' }) });
    assert.equal(codeOf(await search(without, 'foo', regex)), 'regex-unavailable');
  });

  // The attack: an expression that takes PCRE ages over a line that somebody pushed for it.
  test('whose expression takes too many steps ends, and says that it is not complete', async () => {
    await push({ 'a.txt': 'foo ab\n', 'b.txt': `${'ab'.repeat(4_000_000)}\n` }, 'steps');
    const { items, isComplete } = await found(newNode(), '(a|b)*c|foo', { ref: 'steps', isRegex: true });
    assert.deepEqual([items, isComplete], [['a.txt:1:foo ab'], false]);
  });

  test('is kept by what was searched, and answers its pages from one run of git', async () => {
    await push({ 'a.txt': 'foo\n'.repeat(10) }, 'kept');
    const node = newNode();
    searches = 0;
    const first = await found(node, 'foo', { ref: 'kept', page: { offset: 0, limit: 4 } });
    const second = await found(node, 'foo', { ref: 'kept', page: { offset: 4, limit: 4 } });
    const third = await found(node, 'foo', { ref: 'kept', page: { offset: 8, limit: 4 } });
    const lines = [first, second, third].flatMap(({ items }) => items.map((item) => Number(item.split(':')[1])));
    assert.deepEqual([lines, searches], [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 1]);
  });

  test(`ends after ${SEARCH_MATCHES_MAX} matches, and says so`, async () => {
    await push({ 'a.txt': 'foo\n'.repeat(SEARCH_MATCHES_MAX), 'b.txt': 'bar\n' }, 'many');
    const fits = await found(newNode(), 'foo', { ref: 'many' });
    assert.deepEqual([fits.items.length, fits.isComplete, fits.filesSearched], [SEARCH_MATCHES_MAX, true, 2]);
    await push({ 'a.txt': 'foo\n'.repeat(SEARCH_MATCHES_MAX), 'b.txt': 'foo\n', 'c.txt': '' }, 'more');
    const more = await found(newNode(), 'foo', { ref: 'more' });
    assert.deepEqual([more.items.length, more.isComplete, more.filesSearched], [SEARCH_MATCHES_MAX, false, 1]);
  });

  test('that git ends at a bound shows what it found by then, and is not kept', async () => {
    const commit = await push({ 'a.txt': 'foo\n', 'b.txt': 'foo\n' }, 'late');
    const tree = reading.git.line(['rev-parse', `${commit}^{tree}`]);
    const spans = new Set<number>();
    let isLate = true;
    const node = newNode({
      lines: async function* (_root, _wanted, { spanMs }) {
        spans.add(spanMs);
        yield Buffer.from(`${tree}:a.txt\x001\x001\0foo\n`);
        if (isLate) throw new ObjectDatabaseError('reading-too-costly', 'late');
        yield Buffer.from(`${tree}:b.txt\x001\x001\0foo\n`);
      },
    });
    assert.deepEqual(await found(node, 'foo', { ref: 'late' }), {
      items: ['a.txt:1:foo'],
      isComplete: false,
      filesSearched: 1,
    });
    isLate = false;
    const again = await found(node, 'foo', { ref: 'late' });
    assert.deepEqual([again.items.length, again.isComplete, [...spans]], [2, true, [SEARCH_SPAN_MS]]);
  });

  // Nobody should miss the lines of small files because of a film beside them.
  test('goes on without files that git cannot hold, and is complete if these are binary', async () => {
    const large = Buffer.alloc(80 * 1_024 * 1_024, 'a line of text\n');
    const film = Buffer.concat([Buffer.from('\0'), large]);
    await push({ 'a.txt': 'foo\n', 'film.bin': film, 'z.txt': 'foo\n' }, 'film');
    assert.deepEqual(await found(newNode(), 'foo', { ref: 'film' }), {
      items: ['a.txt:1:foo', 'z.txt:1:foo'],
      isComplete: true,
      filesSearched: 2,
    });
    await push({ 'a.txt': 'foo\n', 'log.txt': large, 'z.txt': 'foo\n' }, 'log');
    const { items, isComplete } = await found(newNode(), 'foo', { ref: 'log' });
    assert.deepEqual([items.length, isComplete], [2, false]);
  });

  // The attack: large files at paths that together are longer than the arguments of a process may be.
  test('leaves out as many large files as git can be told of', async () => {
    const commit = await push({ 'a.txt': 'foo\n' }, 'paths-of-large');
    const blob = reading.git.line(['rev-parse', `${commit}:a.txt`]);
    const long = (index: number): string => `${index}`.padStart(20_000, 'x');
    const told: number[] = [];
    const node = newNode({
      files: async function* (_tree, { sizes }) {
        const size = sizes ? ' 99999999' : '';
        for (let index = 0; index < 100; index += 1) yield Buffer.from(`100644 blob ${blob}${size}\t${long(index)}\0`);
      },
      isBinary: async () => true,
      lines: async function* (_root, { without }) {
        told.push(without.reduce((sum, { length }) => sum + length, 0));
        yield Buffer.alloc(0);
        throw new ObjectDatabaseError('object-too-large', 'large');
      },
    });
    assert.equal((await found(node, 'foo', { ref: 'paths-of-large' })).isComplete, false);
    assert.deepEqual(told, [0, 60_000]);
  });

  test('ends with its client', async () => {
    await push({ 'a.txt': 'foo\n' }, 'left');
    const gone = AbortSignal.abort(new Error('The client left'));
    await assert.rejects(search(newNode(), 'foo', { ref: 'left', signal: gone }), /The client left/);
  });

  test('shows no commit that no ref reaches, and knows no expressions of revisions', async () => {
    await push({ 'a.txt': 'foo\n' }, 'gone');
    const tip = reading.git.line(['rev-parse', 'gone']);
    await reading.push({ 'refs/heads/gone': null });
    for (const ref of [tip, 'gone', 'odd~0', 'odd^{tree}', '--all']) {
      assert.equal(codeOf(await search(newNode(), 'foo', { ref })), 'ref-not-found', ref);
    }
  });
});
