/** Folders with the commit that last touched each entry, compared with `git log -1` of each. */
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import { type KnownFolder, LAST_COMMITS_SPAN_MS } from '../../../../core/use-cases/reading/last-commits.ts';
import { listTree, type TreeListing, type WantedTree } from '../../../../core/use-cases/reading/list-tree.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { createDice } from '../../../support/seeded.ts';

const signal = new AbortController().signal;

describe('A folder', () => {
  let reading: GitReading;
  let known: Map<string, KnownFolder>;
  /** How often git walked. */
  let walks: { exclude: number; paths: number }[];

  beforeAll(async () => {
    reading = await startGitReading();
    known = new Map();
    walks = [];
  });
  afterAll(() => reading.close());

  /** The objects, with a note of each walk. */
  const watched = (change: (history: ObjectReader['history']) => Partial<ObjectReader['history']> = () => ({})) => ({
    open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
      const reader = await reading.node.objects.open(committed);
      const changesBelow: ObjectReader['history']['changesBelow'] = (tip, exclude, paths, bounded) => {
        walks.push({ exclude: exclude.length, paths: paths.length });
        return reader.history.changesBelow(tip, exclude, paths, bounded);
      };
      const history = { ...reader.history, changesBelow };
      return { ...reader, history: { ...history, ...change(history) } };
    },
  });
  const list = async (path: readonly (string | Buffer)[], more: Partial<WantedTree> = {}, objects = watched()) =>
    listTree({ objects, knownFolders: known }, await reading.current(), {
      ref: null,
      path: { names: path.map((name) => Buffer.from(name)), folder: false },
      entries: { offset: 0, limit: 1_000 },
      signal,
      ...more,
    });
  const shown = ({ entries }: TreeListing) =>
    Object.fromEntries(entries.items.map(({ name, lastCommit }) => [Buffer.from(name).toString(), lastCommit?.id]));
  /** What git says, one process for each entry. */
  const expected = (tip: ObjectId, folder: string) => {
    const names = reading.git
      .git(['ls-tree', '-z', '--name-only', `${tip}:${folder}`])
      .toString()
      .split('\0')
      .slice(0, -1);
    return Object.fromEntries(
      names.map((name) => {
        const path = folder === '' ? name : `${folder}/${name}`;
        return [name, reading.git.line(['--literal-pathspecs', 'log', '-1', '--format=%H', tip, '--', path])];
      }),
    );
  };

  test('names the commit that git log names, through merges, and walks only new commits after a push', async () => {
    const dice = createDice(7);
    const { git } = reading;
    const tips = [git.commit({ a: '0', b: '0', 'd/e/f': '0', 'd/g': '0', never: '0', 'd/never': '0' })];
    const next = (parents: readonly ObjectId[], index: number, side: number): ObjectId => {
      const path = dice.pick(['a', 'b', 'd/e/f', 'd/g', 'new', 'd/e/new']);
      return git.commit({ [`${path}-${side}`]: `${index}` }, { branch: `scratch-${index}-${side}`, parents });
    };
    for (let index = 0; index < 30; index += 1) {
      const tip = tips.at(-1) as ObjectId;
      if (index % 5 !== 4) tips.push(next([tip], index, 0));
      else {
        const [left, right] = [next([tip], index, 1), next([tip], index, 2)];
        git.git(['read-tree', '--empty']);
        git.git(['read-tree', '-i', '-m', '--aggressive', tip, left, right]);
        const tree = git.line(['write-tree']);
        tips.push(objectId(git.line(['commit-tree', tree, '-p', left, '-p', right, '-m', `merge ${index}`])));
      }
      if (index % 3 !== 0) continue;
      await reading.push({ 'refs/heads/main': tips.at(-1) ?? null });
      for (const folder of ['', 'd', 'd/e']) {
        const names = folder === '' ? [] : folder.split('/');
        assert.deepEqual(
          shown(accepted(await list(names))),
          expected(tips.at(-1) as ObjectId, folder),
          `${index} ${folder}`,
        );
      }
    }
    assert.deepEqual(walks.filter(({ exclude }) => exclude === 0).length, 3, 'each folder is walked whole once');
    const before = walks.length;
    await list([]);
    assert.equal(walks.length, before, 'a known folder is not walked again');
  });

  test('is right for another branch, and after a reset to an older commit', async () => {
    const { git } = reading;
    const base = objectId(git.line(['rev-parse', 'main']));
    const other = git.commit({ b: 'other' }, { branch: 'other', parents: [base] });
    const back = git.commit({ b: '0' }, { branch: 'other' });
    await reading.push({ 'refs/heads/other': back, 'refs/heads/main': other });
    assert.deepEqual(shown(accepted(await list([], { ref: 'other' }))), expected(back, ''));
    assert.deepEqual(shown(accepted(await list([]))), expected(other, ''));
    await reading.push({ 'refs/heads/main': base });
    assert.deepEqual(shown(accepted(await list([]))), expected(base, ''));
  });

  test('does not count a change that a merge threw away', async () => {
    const { git } = reading;
    const base = git.commit({ kept: '1', other: '1' }, { branch: 'ours', parents: [] });
    const left = git.commit({ other: '2' }, { branch: 'ours' });
    const lost = git.commit({ kept: 'lost' }, { branch: 'theirs', parents: [base] });
    const merge = git.commit({ other: '3' }, { branch: 'ours', parents: [left, lost] });
    await reading.push({ 'refs/heads/ours': merge });
    assert.deepEqual(shown(accepted(await list([], { ref: 'ours' }))), { kept: base, other: merge });
  });

  test('is right for names of every kind', async () => {
    const { git } = reading;
    const blob = git.object('blob', 'x');
    const names = ['-dash', ':(glob)*', ':!x', 'line\nfeed', 'quo"te', 'return\r', '*', 'ünï'].map((name) =>
      Buffer.from(name),
    );
    names.push(Buffer.from([0x66, 0xff]));
    names.sort(Buffer.compare);
    const raw = (id: string, mode: string, name: Buffer) =>
      Buffer.concat([Buffer.from(`${mode} `), name, Buffer.from([0]), Buffer.from(id, 'hex')]);
    const inner = git.object('tree', Buffer.concat(names.map((name) => raw(blob, '100644', name))));
    const outer = git.object('tree', Buffer.concat(names.map((name) => raw(inner, '40000', name))));
    const first = objectId(git.line(['commit-tree', outer, '-m', 'first']));
    let tip = first;
    for (let index = 0; index < 30; index += 1) {
      const more = git.object(
        'tree',
        Buffer.concat([
          ...names.map((name) => raw(inner, '40000', name)),
          raw(git.object('blob', `${index}`), '100644', Buffer.from('\u{1F600}')),
        ]),
      );
      tip = objectId(git.line(['commit-tree', more, '-p', tip, '-m', `${index}`]));
    }
    await reading.push({ 'refs/heads/names': tip });
    const root = accepted(await list([], { ref: 'names' }));
    assert.deepEqual(
      root.entries.items.map(({ lastCommit }) => lastCommit?.id),
      [...names.map(() => first), tip],
    );
    for (const name of names) {
      const { entries } = accepted(await list([name], { ref: 'names' }));
      const found = entries.items.map(({ lastCommit }) => lastCommit?.id ?? null);
      const unaskable = name.includes(0x0a) && name.includes(0xff);
      assert.deepEqual(
        found,
        names.map(() => (unaskable ? null : first)),
        name.toString(),
      );
    }
  });

  test('is walked once for many who ask at the same time, also when the first of them leaves', async () => {
    const tip = reading.git.commit(
      { a: 'at the same time', b: 'at the same time' },
      { branch: 'at-once', parents: [] },
    );
    await reading.push({ 'refs/heads/at-once': tip });
    const leaving = new AbortController();
    // Each walk waits until its client leaves, or has been here for a while.
    const objects = watched((history) => ({
      async *changesBelow(from, exclude, paths, bounded) {
        if (bounded.signal !== leaving.signal) return yield* history.changesBelow(from, exclude, paths, bounded);
        walks.push({ exclude: 0, paths: 0 });
        await setTimeout(100);
        leaving.abort(new Error('left'));
        leaving.signal.throwIfAborted();
      },
    }));
    const before = walks.length;
    const first = list([], { ref: 'at-once', signal: leaving.signal }, objects);
    first.catch(() => undefined);
    while (walks.length === before) await setTimeout(1);
    const others = await Promise.all(Array.from({ length: 5 }, () => list([], { ref: 'at-once' }, objects)));
    await assert.rejects(first, /left/);
    for (const other of others) assert.deepEqual(shown(accepted(other)), { a: tip, b: tip });
    assert.equal(walks.length, before + 2, 'the one that failed, and one for all others');
  });

  test('says that a commit is not known when the time is up, and does not walk again for it', async () => {
    const spans: number[] = [];
    const objects = watched((history) => ({
      async *changesBelow(...given) {
        const [, , , { spanMs }] = given;
        spans.push(spanMs);
        yield* (await Array.fromAsync(history.changesBelow(...given))).slice(0, 0);
        throw new ObjectDatabaseError('reading-too-costly', 'late');
      },
    }));
    const tip = reading.git.commit({ a: 'late' }, { branch: 'late', parents: [] });
    await reading.push({ 'refs/heads/late': tip });
    const listing = accepted(await list([], { ref: 'late' }, objects));
    assert.deepEqual([listing.commit?.id, shown(listing)], [tip, { a: undefined }]);
    assert.deepEqual(spans, [LAST_COMMITS_SPAN_MS]);
    const before = walks.length;
    assert.deepEqual(shown(accepted(await list([], { ref: 'late' }))), { a: undefined });
    assert.equal(walks.length, before);
  });

  test('is not found where there is none, and pages its entries', async () => {
    assert.equal(codeOf(await list(['a'])), 'path-not-found');
    assert.equal(codeOf(await list(['nowhere'])), 'path-not-found');
    assert.equal(codeOf(await list([], { path: null })), 'path-not-found');
    assert.equal(codeOf(await list([], { ref: 'nowhere' })), 'ref-not-found');
    const page = accepted(await list([], { entries: { offset: 1, limit: 2 } }));
    const all = accepted(await list([]));
    assert.deepEqual(page.entries.items, all.entries.items.slice(1, 3));
    assert.equal(page.entries.total, all.entries.items.length);
  });
});
