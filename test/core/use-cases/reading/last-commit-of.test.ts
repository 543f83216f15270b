/** The commit that last touched one folder or file, compared with `git log -1`. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import { lastCommitOf } from '../../../../core/use-cases/reading/last-commit-of.ts';
import { type KnownFolder, LAST_COMMITS_SPAN_MS } from '../../../../core/use-cases/reading/last-commits.ts';
import { listTree } from '../../../../core/use-cases/reading/list-tree.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;

describe('The commit that last touched a path', () => {
  let reading: GitReading;
  const known = new Map<string, KnownFolder>();
  /** The commits that each walk left out. */
  const walks: (readonly ObjectId[])[] = [];

  beforeAll(async () => {
    reading = await startGitReading();
  });
  afterAll(() => reading.close());

  const opening = (late = false) => ({
    open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
      const reader = await reading.node.objects.open(committed);
      const changesBelow: ObjectReader['history']['changesBelow'] = (tip, exclude, paths, bounded) => {
        walks.push(exclude);
        assert.equal(bounded.spanMs, LAST_COMMITS_SPAN_MS);
        if (late) throw new ObjectDatabaseError('reading-too-costly', 'late');
        return reader.history.changesBelow(tip, exclude, paths, bounded);
      };
      return { ...reader, history: { ...reader.history, changesBelow } };
    },
  });
  const lastOf = async (tip: ObjectId, path: string | Buffer, objects = opening()): Promise<string | null> => {
    const text = Buffer.from(path).toString('latin1');
    const names = text === '' ? [] : text.split('/').map((name) => Buffer.from(name, 'latin1'));
    const found = await lastCommitOf({ objects, knownFolders: known }, await reading.current(), { tip, names, signal });
    return found?.id ?? null;
  };
  const expected = (tip: ObjectId, path: string): string =>
    reading.git.line(['--literal-pathspecs', 'log', '-1', '--format=%H', tip, '--', path]);

  test('is that of git log, of folders and files, through merges, and only new commits are walked after a push', async () => {
    const { git } = reading;
    const paths = ['lib', 'lib/deep', 'lib/deep/file', 'lib/file', 'other', 'old'];
    const files = { 'lib/deep/file': '0', 'lib/file': '0', other: '0', old: '0' };
    let tip = git.commit(files);
    await reading.push({ 'refs/heads/main': tip });
    for (const path of paths) assert.equal(await lastOf(tip, path), expected(tip, path), path);
    assert.deepEqual(
      walks,
      paths.map(() => []),
    );
    for (let index = 1; index < 6; index += 1) {
      const before = tip;
      const left = git.commit({ 'lib/file': `${index}` }, { branch: `left-${index}`, parents: [before] });
      const right = git.commit({ [`other-${index}`]: 'x' }, { branch: `right-${index}`, parents: [before] });
      const merged = git.commit({ 'lib/file': `${index}`, [`other-${index}`]: 'x' }, { parents: [right, left] });
      tip = index % 2 === 0 ? git.commit({ 'lib/deep/file': `${index}` }) : merged;
      await reading.push({ 'refs/heads/main': tip });
      walks.length = 0;
      for (const path of paths) assert.equal(await lastOf(tip, path), expected(tip, path), `${index} ${path}`);
      assert.deepEqual(
        walks,
        paths.map(() => [before]),
      );
    }
    walks.length = 0;
    for (const path of paths) await lastOf(tip, path);
    assert.deepEqual(walks, [], 'what is known is not walked again');
    assert.equal(await lastOf(tip, ''), tip, 'the commit itself touched the root');
  });

  test('is taken from the list of the folder above, and leaves that list as it is', async () => {
    const { git } = reading;
    const tip = git.commit({ 'lib/file': 'again' });
    await reading.push({ 'refs/heads/main': tip });
    const list = async () =>
      listTree({ objects: opening(), knownFolders: known }, await reading.current(), {
        ...{ ref: null, path: { names: [Buffer.from('lib')], folder: false } },
        ...{ entries: { offset: 0, limit: 100 }, signal },
      });
    await list();
    walks.length = 0;
    assert.equal(await lastOf(tip, 'lib/file'), tip);
    assert.deepEqual(walks, []);
    const next = git.commit({ 'lib/new': 'x' });
    await reading.push({ 'refs/heads/main': next });
    await lastOf(next, 'lib/new');
    walks.length = 0;
    await list();
    assert.deepEqual(walks, [[tip]], 'the list begins with what it knew');
  });

  test('is right for names of every kind, and not known where nothing is', async () => {
    const { git } = reading;
    const names = ['--all', ':(glob)*', 'a b', 'x alone y', 'line\nfeed'].map((name) => Buffer.from(name));
    names.push(Buffer.from([0x66, 0xff]));
    const entries = names.toSorted(Buffer.compare).map((name) => {
      const id = Buffer.from(git.object('blob', name), 'hex');
      return Buffer.concat([Buffer.from('100644 '), name, Buffer.from([0]), id]);
    });
    const first = objectId(git.line(['commit-tree', git.object('tree', Buffer.concat(entries)), '-m', 'names']));
    const more = git.object(
      'tree',
      Buffer.concat([...entries, Buffer.from('100644 zz\0'), Buffer.from(git.object('blob', 'z'), 'hex')]),
    );
    const tip = objectId(git.line(['commit-tree', more, '-p', first, '-m', 'more']));
    await reading.push({ 'refs/heads/names': tip });
    for (const name of names) assert.equal(await lastOf(tip, name), first, name.toString());
    assert.equal(await lastOf(tip, 'zz'), tip);
    for (const path of ['nothing', 'zz/nothing', 'zz/']) assert.equal(await lastOf(tip, path), null, path);
  });

  test('is not known when the time is up', async () => {
    const tip = reading.git.commit({ late: 'x' }, { branch: 'late', parents: [] });
    await reading.push({ 'refs/heads/late': tip });
    assert.equal(await lastOf(tip, 'late', opening(true)), null);
  });
});
