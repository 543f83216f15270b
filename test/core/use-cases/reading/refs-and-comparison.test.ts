/** Pages of branches and tags, and the comparison of two refs, on a repository of the real git. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, onTestFinished, test } from 'vitest';
import type { Diff } from '../../../../core/git/diff/diff.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../../../core/ports/object-database.ts';
import type { AheadBehind, Bounded } from '../../../../core/ports/object-history.ts';
import { APART_SPAN_MS } from '../../../../core/use-cases/reading/ahead-behind.ts';
import {
  COMPARISON_SPAN_MS,
  compareRefs,
  type KnownComparison,
  type WantedComparison,
} from '../../../../core/use-cases/reading/compare-refs.ts';
import {
  BRANCH_DATES_SPAN_MS,
  BRANCHES_BY_CHANGE_MAX,
  listBranchPage,
} from '../../../../core/use-cases/reading/list-branch-page.ts';
import { listTagPage } from '../../../../core/use-cases/reading/list-tag-page.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';

const signal = new AbortController().signal;
const PAGE = { offset: 0, limit: 50 };

let reading: GitReading;
let base: ObjectId;
let tip: ObjectId;
let side: ObjectId;
let counts = 0;
const known = new Map<string, AheadBehind>();
const knownComparisons = new Map<string, KnownComparison>();
const knownDiffs = new Map<string, Diff>();
const knownCommitSeconds = new Map<ObjectId, number>();

beforeAll(async () => {
  reading = await startGitReading();
  const { git } = reading;
  base = git.commit({ text: 'one\n' });
  side = git.commit({ side: '1\n' }, { branch: 'side', parents: [base] });
  side = git.commit({ side: '2\n' }, { branch: 'side' });
  tip = git.commit({ text: 'two\n' });
  const apart = git.commit({ alone: 'x\n' }, { branch: 'apart', parents: [] });
  git.git(['tag', '-a', 'v1.9', '-m', 'Nine', base]);
  git.git(['tag', '-a', 'v1.10', '-m', 'Ten', tip]);
  const tag = (name: string) => objectId(git.line(['rev-parse', name]));
  await reading.push({
    'refs/heads/main': tip,
    'refs/heads/side': side,
    'refs/heads/Feature/(x)+': base,
    'refs/heads/apart': apart,
    'refs/tags/v1.9': tag('v1.9'),
    'refs/tags/v1.10': tag('v1.10'),
    'refs/tags/light': base,
    'refs/tags/tree': tag('main^{tree}'),
    'refs/notes/commits': base,
  });
});
afterAll(() => reading.close());

function context(change: (history: ObjectReader['history']) => Partial<ObjectReader['history']> = () => ({})) {
  const objects = {
    open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
      const reader = await reading.node.objects.open(committed);
      const counted: ObjectReader['history'] = {
        ...reader.history,
        aheadBehind: (...given) => {
          counts += 1;
          return reader.history.aheadBehind(...given);
        },
      };
      return { ...reader, history: { ...counted, ...change(counted) } };
    },
  };
  const caches = { knownAheadBehind: known, knownCommitSeconds, knownComparisons, knownDiffs };
  return { objects, ...caches, clock: reading.node.clock };
}

describe('A page of branches', () => {
  const list = async (search = '', page = PAGE, change?: Parameters<typeof context>[0]) =>
    listBranchPage(context(change), await reading.current(), { search, page, signal });

  test('shows each branch with its tip, ahead and behind of the default branch, and counts a pair once', async () => {
    const { branches, defaultBranch } = await list();
    assert.equal(defaultBranch, 'main');
    assert.deepEqual(
      branches.items.map(({ name, isDefault, commit, aheadBehind }) => [
        name,
        isDefault,
        commit.id,
        aheadBehind?.ahead,
        aheadBehind?.behind,
      ]),
      [
        ['Feature/(x)+', false, base, 0, 1],
        ['apart', false, branches.items[1]?.commit.id, 1, 2],
        ['main', true, tip, 0, 0],
        ['side', false, side, 2, 1],
      ],
    );
    assert.equal(counts, 3);
    await list();
    assert.equal(counts, 3);
  });

  test('finds by a part of the name in any case, which is never a pattern', async () => {
    const names = async (search: string) => (await list(search)).branches.items.map(({ name }) => name);
    assert.deepEqual(await names('FEAT'), ['Feature/(x)+']);
    assert.deepEqual(await names('(X)+'), ['Feature/(x)+']);
    assert.deepEqual(await names('a'), ['Feature/(x)+', 'apart', 'main']);
    assert.deepEqual(await names('(('), []);
    assert.deepEqual(await names('-/^$|[]{}\\'), []);
    const page = await list('a', { offset: 1, limit: 1 });
    assert.deepEqual([page.branches.items.map(({ name }) => name), page.branches.total], [['apart'], 3]);
  });

  test('leaves out a count that takes too long', async () => {
    known.clear();
    const spans = new Set<number>();
    const late = (): Partial<ObjectReader['history']> => ({
      aheadBehind: async (_a, _b, { spanMs }) => {
        spans.add(spanMs);
        throw new ObjectDatabaseError('reading-too-costly', 'late');
      },
    });
    const { branches } = await list('', PAGE, late);
    assert.deepEqual(
      branches.items.map(({ aheadBehind }) => aheadBehind),
      [null, null, { ahead: 0, behind: 0 }, null],
    );
    assert.deepEqual([...spans], [APART_SPAN_MS]);
  });
});

describe('A page of branches by their last change', () => {
  const changed = async (
    of: GitReading,
    page = PAGE,
    change: (reader: ObjectReader) => Partial<ObjectReader> = () => ({}),
  ) => {
    const objects = {
      open: async (committed: Parameters<GitReading['node']['objects']['open']>[0]): Promise<ObjectReader> => {
        const reader = await of.node.objects.open(committed);
        return { ...reader, ...change(reader) };
      },
    };
    const caches = { knownAheadBehind: known, knownCommitSeconds, knownComparisons, knownDiffs };
    const wanted = { search: '', order: 'changed', page, signal } as const;
    return listBranchPage({ objects, ...caches, clock: of.node.clock }, await of.current(), wanted);
  };
  const namesOf = ({ branches }: { readonly branches: { readonly items: readonly { readonly name: string }[] } }) =>
    branches.items.map(({ name }) => name);

  async function another(): Promise<GitReading> {
    const many = await startGitReading();
    onTestFinished(() => many.close());
    return many;
  }

  test('has the newest first, in pages, and reads each date once', async () => {
    knownCommitSeconds.clear();
    const read: ObjectId[] = [];
    const counting = (reader: ObjectReader): Partial<ObjectReader> => ({
      commitSeconds: (ids) => {
        read.push(...ids);
        return reader.commitSeconds(ids);
      },
    });
    const list = await changed(reading, PAGE, counting);
    assert.deepEqual([list.order, namesOf(list)], ['changed', ['apart', 'main', 'side', 'Feature/(x)+']]);
    assert.equal(read.length, 4);
    const second = await changed(reading, { offset: 1, limit: 2 }, counting);
    assert.deepEqual([namesOf(second), second.branches.total], [['main', 'side'], 4]);
    assert.equal(read.length, 4);
  });

  test(`is by name beyond ${BRANCHES_BY_CHANGE_MAX} branches`, async () => {
    const many = await another();
    const one = many.git.commit({ text: 'one\n' });
    const names = Array.from({ length: BRANCHES_BY_CHANGE_MAX }, (_, number) => `refs/heads/b${number}`);
    await many.push(Object.fromEntries(names.map((name) => [name, one])));
    assert.equal((await changed(many)).order, 'changed');
    await many.push({ 'refs/heads/one-more': one });
    const list = await changed(many, { offset: 0, limit: 2 });
    assert.deepEqual([list.order, namesOf(list)], ['name', ['b0', 'b1']]);
  });

  // The attack: many branches, each with a tip of its own, on storage that is slow.
  test('is by name where the dates take too long to read, and what was read is kept', async () => {
    const many = await another();
    const tree = many.git.tree([]);
    const tips = Array.from({ length: 101 }, (_, number) =>
      many.git.object('commit', `tree ${tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> ${number} +0000\n\nx\n`),
    );
    await many.push(Object.fromEntries(tips.map((id, number) => [`refs/heads/t${number}`, id])));
    const after = (ms: number) => (): Partial<ObjectReader> => ({
      commitSeconds: async (ids: readonly ObjectId[]) => {
        many.node.clock.advance(ms);
        return new Map(ids.map((id) => [id, tips.indexOf(id)]));
      },
    });
    const late = await changed(many, { offset: 0, limit: 1 }, after(BRANCH_DATES_SPAN_MS + 1));
    assert.deepEqual([late.order, namesOf(late)], ['name', ['t0']]);
    const list = await changed(many, { offset: 0, limit: 1 }, after(BRANCH_DATES_SPAN_MS));
    assert.deepEqual([list.order, namesOf(list)], ['changed', ['t100']]);
  });
});

describe('A page of tags', () => {
  const list = async (search = '', order: 'name' | 'version' = 'name') =>
    listTagPage(context(), await reading.current(), { search, order, page: PAGE });

  test('shows annotations, and what tags lead to', async () => {
    const { tags } = await list();
    assert.deepEqual(
      tags.items.map(({ name, target, annotation, commit }) => [
        name,
        target === tip || target === base,
        annotation?.message ?? null,
        commit?.id ?? null,
      ]),
      [
        ['light', true, null, base],
        ['tree', false, null, null],
        ['v1.10', true, 'Ten\n', tip],
        ['v1.9', true, 'Nine\n', base],
      ],
    );
    assert.equal(tags.items[2]?.annotation?.tagger?.name, 'Ada');
  });

  test('comes with the highest version first on request', async () => {
    const { tags } = await list('', 'version');
    assert.deepEqual(
      tags.items.map(({ name }) => name),
      ['v1.10', 'v1.9', 'tree', 'light'],
    );
  });
});

describe('A comparison', () => {
  const compare = async (more: Partial<WantedComparison> = {}, change?: Parameters<typeof context>[0]) =>
    compareRefs(context(change), await reading.current(), { base: 'main', head: 'side', page: PAGE, signal, ...more });

  test('shows what the head has that the base lacks, since both were the same', async () => {
    const found = accepted(await compare());
    assert.deepEqual([found.mergeBase, found.aheadBehind], [base, { ahead: 2, behind: 1 }]);
    assert.deepEqual(
      found.commits?.map(({ id }) => id),
      reading.git.line(['rev-list', `${tip}..${side}`]).split('\n'),
    );
    assert.deepEqual(
      found.diff.files.map(({ path, additions }) => [Buffer.from(path).toString(), additions]),
      [['side', 1]],
    );
    assert.deepEqual([found.base.name, found.head.commit.id], ['main', side]);
  });

  test('is of the files as both have them on request, with the same commits', async () => {
    const [since, direct] = [accepted(await compare()), accepted(await compare({ direct: true }))];
    const files = { comparedFrom: null, diff: null };
    assert.deepEqual({ ...direct, ...files }, { ...since, ...files });
    assert.deepEqual([since.comparedFrom, direct.comparedFrom], [since.mergeBase, direct.base.commit.id]);
    assert.deepEqual(
      direct.diff.files.map(({ path, additions, deletions }) => [Buffer.from(path).toString(), additions, deletions]),
      [
        ['side', 1, 0],
        ['text', 1, 1],
      ],
    );
  });

  test('of histories without a common commit compares their files', async () => {
    const found = accepted(await compare({ head: 'apart' }));
    assert.deepEqual([found.mergeBase, found.mergeBaseKnown], [null, true]);
    assert.deepEqual(
      found.diff.files.map(({ path, status }) => [Buffer.from(path).toString(), status]),
      [
        ['alone', 'added'],
        ['text', 'deleted'],
      ],
    );
  });

  test('refuses what is no ref, and never takes a revision expression', async () => {
    for (const head of ['nowhere', 'main~1', 'main..side', '--output=/tmp/x', '-p']) {
      assert.equal(codeOf(await compare({ head })), 'ref-not-found', head);
    }
    for (const side of ['base', 'head'] as const) {
      assert.deepEqual(await compare({ [side]: 'nowhere' }), { refused: { code: 'ref-not-found', side } });
    }
  });

  test('says what was not found in time', async () => {
    known.clear();
    knownComparisons.clear();
    const spans: number[] = [];
    const late = async (...given: readonly unknown[]) => {
      const bounded = given.at(-1) as Bounded;
      spans.push(bounded.spanMs);
      throw new ObjectDatabaseError('reading-too-costly', 'late');
    };
    const found = accepted(await compare({}, () => ({ mergeBase: late, aheadBehind: late, commitsBetween: late })));
    assert.deepEqual([found.mergeBase, found.aheadBehind, found.commits], [null, null, null]);
    assert.equal(found.mergeBaseKnown, false);
    assert.deepEqual(found.diff.files.length, 2);
    assert.deepEqual(
      spans.toSorted((a, b) => a - b),
      [APART_SPAN_MS, COMPARISON_SPAN_MS, COMPARISON_SPAN_MS],
    );
    assert.equal(accepted(await compare()).mergeBase, base, 'it is looked for again');
  });

  test('asks git once for the same two commits, and again for another page', async () => {
    for (const kept of [known, knownComparisons, knownDiffs]) kept.clear();
    const asked: string[] = [];
    const counting = (history: ObjectReader['history']): Partial<ObjectReader['history']> => ({
      mergeBase: (...given) => {
        asked.push('merge-base');
        return history.mergeBase(...given);
      },
      commitsBetween: (...given) => {
        asked.push('commits');
        return history.commitsBetween(...given);
      },
      diff: (...given) => {
        asked.push('diff');
        return history.diff(...given);
      },
    });
    const first = accepted(await compare({}, counting));
    assert.deepEqual(asked.splice(0).sort(), ['commits', 'diff', 'merge-base']);
    assert.deepEqual(accepted(await compare({}, counting)), first);
    assert.deepEqual(asked, []);
    const second = accepted(await compare({ page: { offset: 1, limit: 1 } }, counting));
    assert.deepEqual([second.commits?.length, second.mergeBase], [1, base]);
    assert.deepEqual(asked, ['merge-base', 'commits']);
  });

  test('does not keep a diff that its time cut short', async () => {
    knownDiffs.clear();
    const late = async function* () {
      yield Buffer.from('');
      throw new ObjectDatabaseError('reading-too-costly', 'late');
    };
    const cut = accepted(await compare({}, () => ({ diff: late })));
    assert.deepEqual(cut.diff.truncated, ['time']);
    assert.deepEqual(accepted(await compare()).diff.truncated, []);
  });
});
