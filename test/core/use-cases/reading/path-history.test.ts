/** The commits of one path, compared with `git log -- <path>`. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createKnownAnswers } from '../../../../apps/front-door/known-answers.ts';
import { type ObjectId, objectId, timestamp } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import { type CommitSearch, listCommits, type WantedCommits } from '../../../../core/use-cases/reading/list-commits.ts';
import {
  type KnownPathHistory,
  PATH_HISTORY_COMMITS_MAX,
  PATH_HISTORY_SPAN_MS,
  PATH_RENAMES_MAX,
} from '../../../../core/use-cases/reading/path-history.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;
const PAGE = { offset: 0, limit: 50 };

describe('The commits of a path', () => {
  let reading: GitReading;
  let known: Map<string, KnownPathHistory>;
  let walks = 0;

  beforeAll(async () => {
    reading = await startGitReading();
    known = new Map();
  });
  afterAll(() => reading.close());

  const opening = (findCommits?: ObjectReader['history']['findCommits']) => ({
    open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
      const reader = await reading.node.objects.open(committed);
      const history: ObjectReader['history'] = {
        ...reader.history,
        findCommits: (...given) => {
          walks += 1;
          return (findCommits ?? reader.history.findCommits)(...given);
        },
      };
      return { ...reader, history };
    },
  });
  const list = async (path: string | Buffer, more: Partial<WantedCommits> = {}, objects = opening()) => {
    const names = path.length === 0 ? [] : [Buffer.from(path)];
    const ofPath = { path: { names, folder: false }, signal };
    const context = { ...reading.node, ...createKnownAnswers(), objects, knownPathHistories: known };
    return listCommits(context, await reading.current(), { ref: null, ofPath, page: PAGE, ...more });
  };
  const expected = (tip: ObjectId, path: string) =>
    reading.git.line(['--literal-pathspecs', 'rev-list', tip, '--', path]).split('\n');

  test('are those of git log, merges simplified, in pages that need one walk', async () => {
    const { git } = reading;
    let tip = git.commit({ a: '0', other: '0' });
    for (let index = 1; index < 9; index += 1) {
      const side = git.commit({ a: `${index}` }, { branch: 'side', parents: [tip] });
      const main = git.commit({ other: `${index}` }, { parents: [tip] });
      tip = git.commit({ a: `${index}` }, { parents: [main, side] });
    }
    await reading.push({ 'refs/heads/main': tip });
    const all = accepted(await list('a'));
    assert.deepEqual(
      all.commits.map(({ id }) => id),
      expected(tip, 'a'),
    );
    assert.deepEqual([all.commits.length, all.total, all.hasMore, all.truncated], [9, null, false, false]);
    const pages = [];
    for (const offset of [0, 4, 8, 12]) pages.push(accepted(await list('a', { page: { offset, limit: 4 } })));
    assert.deepEqual(
      pages.map(({ commits, hasMore }) => [commits.length, hasMore]),
      [
        [4, true],
        [4, true],
        [1, false],
        [0, false],
      ],
    );
    assert.deepEqual(
      pages.flatMap(({ commits }) => commits.map(({ id }) => id)),
      all.commits.map(({ id }) => id),
    );
    assert.equal(walks, 1);
  });

  test('are found for a path that exists no more, and refused for one that never did', async () => {
    const { git } = reading;
    const made = git.commit({ gone: '1' }, { branch: 'gone' });
    const removed = git.commit({ gone: null }, { branch: 'gone' });
    await reading.push({ 'refs/heads/gone': removed });
    const { commits } = accepted(await list('gone', { ref: 'gone' }));
    assert.deepEqual(
      commits.map(({ id }) => id),
      [removed, made],
    );
    for (const path of ['never', '', '--all', ':(glob)*']) {
      assert.equal(codeOf(await list(path, { ref: 'gone' })), 'path-not-found', path);
    }
    assert.equal(codeOf(await list('gone', { ref: '--all' })), 'ref-not-found');
  });

  test('and those that a search finds are those of git log, by author, message and time', async () => {
    const { git } = reading;
    let tip: ObjectId | null = null;
    const people = ['Ada <ada@example.org>', 'Bob <bob@example.org>', 'Zoë <zoe@example.org>'];
    for (let index = 0; index < 12; index += 1) {
      const [, name = '', email = ''] = /^(.*) <(.*)>$/.exec(people[index % 3] ?? '') ?? [];
      // The fifth was made before all others, as by a clock that was wrong.
      const seconds = index === 5 ? 1_000 : 1_700_000_000 + index * 3_600;
      const environment = { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email };
      const dates = { GIT_AUTHOR_DATE: `@${seconds - 60} +0000`, GIT_COMMITTER_DATE: `@${seconds} +0000` };
      const tree = git.line(['mktree'], {
        input: `100644 blob ${git.object('blob', `${index}`)}\t${index % 2 === 0 ? 'even' : 'odd'}\n`,
      });
      const parent: string[] = tip === null ? [] : ['-p', tip];
      const message = `Change ${index}\n\nFixes [${index}] (a+b)*\n`;
      tip = objectId(git.line(['commit-tree', tree, ...parent, '-m', message], { env: { ...environment, ...dates } }));
    }
    await reading.push({ 'refs/heads/searched': tip });
    const at = (hour: number) => timestamp(new Date((1_700_000_000 + hour * 3_600) * 1_000).toISOString());
    const nothing = { author: null, text: null, since: null, until: null, signal };
    const find = async (search: Partial<CommitSearch>, path = '') => {
      const found = accepted(
        await list(path, {
          ref: 'searched',
          search: { ...nothing, ...search },
          ...(path === '' ? { ofPath: null } : {}),
        }),
      );
      return found.commits.map(({ message }) => Number(/\d+/.exec(message)?.[0]));
    };
    const all = [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
    assert.deepEqual(await find({ author: 'ada' }), [9, 6, 3, 0]);
    assert.deepEqual(await find({ author: 'BOB@example' }), [10, 7, 4, 1]);
    assert.deepEqual(await find({ author: 'Zoë <zoe' }), [11, 8, 5, 2]);
    assert.deepEqual(await find({ author: '.*' }), [], 'it is no expression');
    assert.deepEqual(await find({ text: 'fixes [1' }), [11, 10, 1]);
    assert.deepEqual(await find({ text: '(a+b)*' }), all);
    assert.deepEqual(await find({ text: '--all' }), []);
    assert.deepEqual(await find({ text: 'Change 1\n' }), [], 'a line holds no line feed');
    assert.deepEqual(await find({ since: at(3), until: at(7) }), [7, 6, 4, 3]);
    assert.deepEqual(await find({ since: at(9) }), [11, 10, 9]);
    assert.deepEqual(await find({ until: at(2) }), [5, 2, 1, 0], 'also behind a commit of a wrong clock');
    assert.deepEqual(await find({ until: timestamp('1969-12-31T23:59:59.000Z') }), []);
    assert.deepEqual(await find({ author: 'ada', text: 'change', since: at(1), until: at(8) }), [6, 3]);
    assert.deepEqual(await find({ author: 'nobody' }, 'odd'), [], 'the path is there');
    assert.deepEqual(await find({ author: 'ada' }, 'odd').then((found) => found.length > 0), true);
  });

  test('are right for paths that look like options and patterns, or are no text', async () => {
    const { git } = reading;
    const names = ['--all', ':(glob)*', '*', 'line\nfeed', 'return\r', '^main'].map((name) => Buffer.from(name));
    names.push(Buffer.from([0xff, 0xfe]));
    let tip: ObjectId | null = null;
    const made: ObjectId[] = [];
    for (const [index] of names.entries()) {
      const entries = names.slice(0, index + 1).sort(Buffer.compare);
      const blob = git.object('blob', 'x');
      const tree = git.object(
        'tree',
        Buffer.concat(
          entries.map((name) =>
            Buffer.concat([Buffer.from('100644 '), name, Buffer.from([0]), Buffer.from(blob, 'hex')]),
          ),
        ),
      );
      const parent: string[] = tip === null ? [] : ['-p', tip];
      tip = objectId(git.line(['commit-tree', tree, ...parent, '-m', `${index}`]));
      made.push(tip);
    }
    await reading.push({ 'refs/heads/odd': tip });
    for (const [index, name] of names.entries()) {
      const { commits } = accepted(await list(name, { ref: 'odd' }));
      assert.deepEqual(
        commits.map(({ id }) => id),
        [made[index]],
        name.toString(),
      );
    }
  });

  test('go on under the names that a file had before, as git log --follow does, and look for each once', async () => {
    const { git } = reading;
    const text = (last: string): string => `${Array.from({ length: 30 }, (_, n) => `line ${n}\n`).join('')}${last}\n`;
    git.commit({ 'lib/first': text('one'), other: '1' }, { branch: 'moved', parents: [], message: 'Begin' });
    git.commit({ 'lib/first': text('two') }, { branch: 'moved' });
    git.commit({ 'lib/first': null, 'lib/second': text('three'), other: '2' }, { branch: 'moved' });
    git.commit({ other: '3' }, { branch: 'moved' });
    git.commit({ 'lib/second': null, third: text('three') }, { branch: 'moved' });
    const tip = git.commit({ third: text('four') }, { branch: 'moved' });
    await reading.push({ 'refs/heads/moved': tip });
    const expectedIds = git.line(['log', '--follow', '--format=%H', tip, '--', 'third']).split('\n');
    assert.equal(expectedIds.length, 5);
    let diffs = 0;
    const counting = {
      open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
        const reader = await reading.node.objects.open(committed);
        const diff: ObjectReader['history']['diff'] = (...given) => {
          diffs += 1;
          return reader.history.diff(...given);
        };
        return { ...reader, history: { ...reader.history, diff } };
      },
    };
    const follow = async (path: string, page = PAGE) => {
      const ofPath = {
        path: { names: path.split('/').map((name) => Buffer.from(name)), folder: false },
        follow: true,
        signal,
      };
      return accepted(await list('', { ref: 'moved', ofPath, page }, counting));
    };
    const names = (paths: readonly Uint8Array[]): string[] => paths.map((path) => Buffer.from(path).toString());
    const all = await follow('third');
    assert.deepEqual(
      all.commits.map(({ id }) => id),
      expectedIds,
    );
    assert.deepEqual(
      [names(all.earlierPaths), all.hasMore, all.truncated],
      [['lib/second', 'lib/first'], false, false],
    );
    assert.equal(diffs, 2, 'the commit that has no parent is compared with nothing');
    const pages = [];
    for (const offset of [0, 2, 4]) pages.push(await follow('third', { offset, limit: 2 }));
    assert.deepEqual(
      pages.map(({ commits, earlierPaths, hasMore }) => [commits.map(({ id }) => id), names(earlierPaths), hasMore]),
      [
        [expectedIds.slice(0, 2), [], true],
        [expectedIds.slice(2, 4), ['lib/second', 'lib/first'], true],
        [expectedIds.slice(4), ['lib/first'], false],
      ],
    );
    assert.equal(diffs, 2, 'what was found is kept');
    const folder = await follow('lib');
    assert.deepEqual([folder.commits.length, folder.earlierPaths, diffs], [4, [], 2]);
    const nothing = { author: null, text: null, since: null, until: null, signal };
    const ofPath = { path: { names: [Buffer.from('third')], folder: false }, follow: true, signal };
    const begun = accepted(await list('', { ref: 'moved', ofPath, search: { ...nothing, text: 'begin' } }, counting));
    assert.deepEqual(
      [begun.commits.map(({ id }) => id), names(begun.earlierPaths), begun.truncated, diffs],
      [expectedIds.slice(-1), ['lib/first'], false, 2],
      'a search goes on as well',
    );
    const own = accepted(await list('third', { ref: 'moved' }));
    assert.deepEqual([own.commits.length, own.earlierPaths], [2, []]);
  });

  test('go on under as many earlier names as the limit, and say that there may be more under another one', async () => {
    const { git } = reading;
    const text = 'the same text\n'.repeat(20);
    git.commit({ 'name-0': text }, { branch: 'often', parents: [] });
    for (let index = 1; index <= PATH_RENAMES_MAX + 1; index += 1) {
      git.commit({ [`name-${index - 1}`]: null, [`name-${index}`]: text }, { branch: 'often' });
    }
    const id = (back: number): ObjectId => objectId(git.line(['rev-parse', `often~${back}`]));
    await reading.push({ 'refs/heads/often': id(0), 'refs/heads/most': id(1) });
    const follow = async (ref: string, name: string) => {
      const ofPath = { path: { names: [Buffer.from(name)], folder: false }, follow: true, signal };
      return accepted(await list('', { ref, ofPath }));
    };
    const most = await follow('most', `name-${PATH_RENAMES_MAX}`);
    assert.deepEqual([most.commits.length, most.truncated], [PATH_RENAMES_MAX + 1, false]);
    const more = await follow('often', `name-${PATH_RENAMES_MAX + 1}`);
    assert.deepEqual([more.commits.length, more.truncated], [PATH_RENAMES_MAX + 1, true]);
  });

  test('say that older ones may be missing when a rename was not found in time, and look for it again', async () => {
    const late = {
      open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
        const reader = await reading.node.objects.open(committed);
        const diff: ObjectReader['history']['diff'] = () => {
          throw new ObjectDatabaseError('reading-too-costly', 'late');
        };
        return { ...reader, history: { ...reader.history, diff } };
      },
    };
    known.clear();
    const ofPath = { path: { names: [Buffer.from('third')], folder: false }, follow: true, signal };
    const cut = accepted(await list('', { ref: 'moved', ofPath }, late));
    assert.deepEqual([cut.commits.length, cut.truncated], [2, true]);
    assert.equal(accepted(await list('', { ref: 'moved', ofPath })).commits.length, 5);
  });

  // The attack: a file that was renamed again and again, each time in commits that take git seconds.
  test('are looked for under no further name once the time has passed', async () => {
    known.clear();
    const { clock } = reading.node;
    const ofPath = { path: { names: [Buffer.from('third')], folder: false }, follow: true, signal };
    const slow = {
      open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
        const reader = await reading.node.objects.open(committed);
        const findCommits: ObjectReader['history']['findCommits'] = (...given) => {
          clock.advance(PATH_HISTORY_SPAN_MS / 2 + 1);
          return reader.history.findCommits(...given);
        };
        return { ...reader, history: { ...reader.history, findCommits } };
      },
    };
    const { commits, earlierPaths, truncated } = accepted(await list('', { ref: 'moved', ofPath }, slow));
    assert.deepEqual([commits.length, earlierPaths.length, truncated], [3, 1, true]);
    known.clear();
  });

  test('say that older ones may be missing when the time is up, or there are more than the limit', async () => {
    const ids = (count: number) =>
      Array.from({ length: count }, () => reading.git.line(['rev-parse', 'main']) as ObjectId);
    const [id] = ids(1);
    const spans = new Set<number>();
    const yielding = (count: number, late: boolean) =>
      opening(async function* (_tip, _filter, { spanMs }) {
        spans.add(spanMs);
        yield Array.from({ length: count }, () => id as ObjectId);
        if (late) throw new ObjectDatabaseError('reading-too-costly', 'late');
      });
    const last = { offset: PATH_HISTORY_COMMITS_MAX - 5, limit: 5 };
    for (const [count, late, truncated] of [
      [PATH_HISTORY_COMMITS_MAX, false, false],
      [PATH_HISTORY_COMMITS_MAX + 1, false, true],
      [PATH_HISTORY_COMMITS_MAX, true, true],
    ] as const) {
      known.clear();
      const page = accepted(await list('a', { page: last }, yielding(count, late)));
      assert.deepEqual([page.commits.length, page.hasMore, page.truncated], [5, false, truncated], `${count} ${late}`);
    }
    assert.deepEqual([...spans], [PATH_HISTORY_SPAN_MS]);
    known.clear();
  });
});
