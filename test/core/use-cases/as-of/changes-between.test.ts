/** What changed between two moments, on a repository of the real git. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import {
  type BothMoments,
  filesChangedBetween,
  refsChangedBetween,
  type WantedFileChanges,
} from '../../../../core/use-cases/as-of/changes-between.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;
const ALL = { offset: 0, limit: 100 };

describe('The changes between two moments', () => {
  let reading: GitReading;
  let first: FoundRepository;
  let last: FoundRepository;
  let ids: Record<'one' | 'two' | 'forced', ObjectId>;

  beforeAll(async () => {
    reading = await startGitReading();
    const { git } = reading;
    const one = git.commit({ kept: 'kept\n', text: 'one\n' }, { message: 'One\n' });
    const two = git.commit({ kept: 'kept\n', text: 'two\n', more: 'more\n' }, { parents: [one] });
    const forced = git.commit({ kept: 'kept\n', text: 'forced\n' }, { parents: [one], message: 'Forced\n' });
    ids = { one, two, forced };
    const main = 'refs/heads/main';
    first = await reading.push({
      [main]: one,
      'refs/heads/gone': one,
      'refs/heads/same': one,
      'refs/heads/moved': two,
    });
    await reading.push({ [main]: two, 'refs/heads/moved': forced });
    last = await reading.push({ 'refs/heads/gone': null, 'refs/tags/v1': two });
  });
  afterAll(() => reading.close());

  const refsOf = async (both: BothMoments, page = ALL) => {
    const { items, total } = await refsChangedBetween(reading.node, both, page, signal);
    return { total, refs: items.map(({ ref, before, after }) => [ref, before?.id ?? null, after?.id ?? null]) };
  };

  test('are the refs that were created, moved and deleted, in the order of their names', async () => {
    const { one, two, forced } = ids;
    const changed = [
      ['refs/heads/gone', one, null],
      ['refs/heads/main', one, two],
      ['refs/heads/moved', two, forced],
      ['refs/tags/v1', null, two],
    ];
    assert.deepEqual(await refsOf({ earlier: first, later: last }), { total: 4, refs: changed });
    assert.deepEqual(await refsOf({ earlier: first, later: last }, { offset: 1, limit: 2 }), {
      total: 4,
      refs: changed.slice(1, 3),
    });
    assert.deepEqual(await refsOf({ earlier: last, later: last }), { total: 0, refs: [] });
  });

  test('are found among thousands of refs, and end with their reader', async () => {
    const names = Array.from({ length: 1_500 }, (_, n) => `refs/tags/n${String(n).padStart(4, '0')}`);
    const many = await reading.push(Object.fromEntries(names.map((name) => [name, ids.one])));
    const changed = await reading.push({ 'refs/tags/n0007': ids.two, 'refs/tags/n1400': null });
    assert.deepEqual(await refsOf({ earlier: many, later: changed }), {
      total: 2,
      refs: [
        ['refs/tags/n0007', ids.one, ids.two],
        ['refs/tags/n1400', ids.one, null],
      ],
    });
    const left = AbortSignal.abort(new Error('left'));
    await assert.rejects(refsChangedBetween(reading.node, { earlier: last, later: many }, ALL, left), /left/);
  });

  const filesOf = (both: BothMoments, more: Partial<WantedFileChanges> = {}) =>
    filesChangedBetween({ ...reading.node, knownDiffs: new Map() }, both, { ref: null, signal, ...more });
  const pathsOf = (found: Awaited<ReturnType<typeof filesOf>>) =>
    accepted(found).diff?.files.map(({ path, status }) => `${status} ${Buffer.from(path).toString()}`) ?? null;

  test('are the files of the default branch, or of the branch or tag that is named', async () => {
    const both = { earlier: first, later: last };
    assert.deepEqual(pathsOf(await filesOf(both)), ['added more', 'modified text']);
    // The older commit is reached by no ref any more.
    assert.deepEqual(pathsOf(await filesOf(both, { ref: 'moved' })), ['deleted more', 'modified text']);
    assert.deepEqual(pathsOf(await filesOf(both, { ref: 'refs/heads/same' })), []);
    assert.deepEqual(pathsOf(await filesOf(both, { ref: 'v1' })), ['added kept', 'added more', 'added text']);
    const gone = accepted(await filesOf(both, { ref: 'gone' }));
    assert.deepEqual([gone.ref, gone.before, gone.after, gone.diff], ['refs/heads/gone', ids.one, null, null]);
    assert.equal(codeOf(await filesOf(both, { ref: 'nothing' })), 'ref-not-found');
  });

  test('can be read for one file alone', async () => {
    const found = accepted(
      await filesOf({ earlier: first, later: last }, { shown: { file: { index: 1, context: 3 } } }),
    );
    assert.deepEqual(
      found.diff?.files.map(({ path }) => Buffer.from(path).toString()),
      ['text'],
    );
    const beyond = await filesOf({ earlier: first, later: last }, { shown: { file: { index: 9, context: 3 } } });
    assert.equal(codeOf(beyond), 'path-not-found');
  });
});
