/** Which commit a reader names. The attack: an expression, or the id of an object that no ref reaches. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { closing, openView } from '../../../../core/use-cases/reading/repository-view.ts';
import {
  BRANCHES_NAMED_MAX,
  commitNamed,
  resolveRef,
  SHORT_ID_COMMITS_NAMED_MAX,
  SHORT_ID_DIGITS_MIN,
  SHORT_ID_OBJECTS_MAX,
  withoutDefaultBranch,
} from '../../../../core/use-cases/reading/resolve-ref.ts';
import type { FoundRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { codeOf } from '../../../support/accounts.ts';
import { startReading } from '../../../support/reading.ts';

async function started() {
  const reading = await startReading();
  const { objects } = reading;
  const tree = objects.tree({});
  const first = objects.commit({ tree, seconds: 1 });
  const second = objects.commit({ tree, seconds: 2, parents: [first] });
  const resolved = (repository: FoundRepository, requested: string | null) =>
    closing(openView(reading.node, repository), async (view) =>
      resolveRef(repository, await view.objects(), requested),
    );
  /** Returns the commit that was found, or the code of the refusal. */
  const commitOf = async (repository: FoundRepository, requested: string | null): Promise<ObjectId | string | null> => {
    const found = await resolved(repository, requested);
    return 'refused' in found ? codeOf(found) : found.commit.id;
  };
  return { reading, objects, tree, first, second, repository: await reading.repository('r'), resolved, commitOf };
}

describe('A ref to read', () => {
  test('is the default branch unless another is named, and the answer repeats the name', async () => {
    const { reading, repository, first, second, resolved } = await started();
    const pushed = await reading.push(repository, { 'refs/heads/master': second, 'refs/heads/a/b': first });
    for (const [requested, name, id] of [
      [null, 'master', second],
      ['master', 'master', second],
      ['a/b', 'a/b', first],
      ['refs/heads/a/b', 'refs/heads/a/b', first],
      ['', 'master', second],
      ['HEAD', 'HEAD', second],
      [first.toUpperCase(), first.toUpperCase(), first],
    ] as const) {
      const found = await resolved(pushed, requested);
      assert.ok(!('refused' in found));
      assert.deepEqual([found.name, found.commit.id], [name, id]);
    }
  });

  test("is the branch if a tag has the same name; the tag's full name finds the tag", async () => {
    const { reading, repository, first, second, commitOf } = await started();
    const pushed = await reading.push(repository, { 'refs/heads/same': second, 'refs/tags/same': first });
    assert.equal(await commitOf(pushed, 'same'), second);
    assert.equal(await commitOf(pushed, 'refs/tags/same'), first);
  });

  test('is the commit that a short id names, after branches and tags, if a ref reaches it and no other', async () => {
    const { reading, repository, first, second, commitOf } = await started();
    const pushed = await reading.push(repository, { 'refs/heads/master': second });
    const short = second.slice(0, SHORT_ID_DIGITS_MIN);
    for (const text of [short, short.toUpperCase(), second.slice(0, 39)])
      assert.equal(await commitOf(pushed, text), second);
    for (const text of [second.slice(0, SHORT_ID_DIGITS_MIN - 1), `${second}0`, `${short}~1`, `${short}g`]) {
      assert.equal(await commitOf(pushed, text), 'ref-not-found', text);
    }
    const tagged = await reading.push(pushed, { [`refs/tags/${short}`]: first });
    assert.equal(await commitOf(tagged, short), first);
    const gone = await reading.push(tagged, { [`refs/tags/${short}`]: null, 'refs/heads/master': first });
    assert.equal(await commitOf(gone, short), 'ref-not-found');
    assert.equal(await commitOf(gone, first.slice(0, SHORT_ID_DIGITS_MIN)), first);
  });

  // Commits whose ids begin alike take long to make, so the search for them is replaced.
  test('is refused where several commits begin alike, which are named up to the limit', async () => {
    const { reading, repository, objects, tree } = await started();
    const commits = Array.from({ length: SHORT_ID_COMMITS_NAMED_MAX + 1 }, (_, n) =>
      objects.commit({ tree, seconds: n + 10 }),
    ).sort();
    const refs = Object.fromEntries(commits.map((id, n) => [`refs/heads/b${n}`, id]));
    const pushed = await reading.push(repository, refs);
    const alike = async (ids: readonly ObjectId[]) =>
      closing(openView(reading.node, pushed), async (view) => {
        const reader = { ...(await view.objects()), startingWith: async () => ids };
        const found = await commitNamed(pushed, reader, 'abcdef0');
        return found !== null && 'refused' in found ? found.refused : found?.id;
      });
    const code = 'short-id-ambiguous';
    const most = commits.slice(0, SHORT_ID_COMMITS_NAMED_MAX);
    assert.deepEqual(await alike(most), { code, digits: 'abcdef0', commits: most, more: false });
    assert.deepEqual(await alike(commits), { code, digits: 'abcdef0', commits: most, more: true });
    assert.equal(await alike([commits[0] as ObjectId, tree]), commits[0], 'what is no commit is nothing here');
    const others = Array.from({ length: SHORT_ID_OBJECTS_MAX - 1 }, () => tree);
    assert.equal(await alike([commits[0] as ObjectId, ...others]), commits[0]);
    const refused = { code, digits: 'abcdef0', commits: [commits[0]], more: true };
    assert.deepEqual(await alike([commits[0] as ObjectId, ...others, tree]), refused);
  });

  test('is refused with branches up to the limit where the default branch is not there, and the others are counted', async () => {
    const { reading, repository, first } = await started();
    const named = async (count: number) => {
      const names = Array.from({ length: count }, (_, n) => `refs/heads/b${String(n).padStart(2, '0')}`);
      const refusal = withoutDefaultBranch(
        await reading.push(repository, Object.fromEntries(names.map((name) => [name, first]))),
      );
      assert.ok(refusal.code === 'default-branch-missing');
      return [refusal.branches.length, refusal.others];
    };
    assert.deepEqual(await named(BRANCHES_NAMED_MAX), [BRANCHES_NAMED_MAX, 0]);
    assert.deepEqual(await named(BRANCHES_NAMED_MAX + 1), [BRANCHES_NAMED_MAX, 1]);
  });

  test('peels an annotated tag to its commit, and no commit is in a tag of a tree', async () => {
    const { reading, repository, objects, tree, first, commitOf } = await started();
    const pushed = await reading.push(repository, {
      'refs/tags/v1': objects.tag(first, 'v1'),
      'refs/tags/tree': objects.tag(tree, 'tree'),
    });
    assert.equal(await commitOf(pushed, 'v1'), first);
    assert.equal(await commitOf(pushed, 'tree'), 'ref-not-a-commit');
  });

  test('is not an expression, a too short id, a part of a full name, or an object but a commit', async () => {
    const { reading, repository, objects, tree, first, second, commitOf } = await started();
    const pushed = await reading.push(repository, {
      'refs/heads/master': second,
      'refs/notes/commits': first,
      'refs/tags/v1': objects.tag(first, 'v1'),
    });
    const expressions = ['head', '@', 'master~1', 'master^', 'master@{1}', ':/A', 'master..v1', '--all', 'a\0b'];
    const others = [second.slice(0, 6), 'heads/master', 'notes/commits', '../../x', tree, 'f'.repeat(40)];
    for (const requested of [...expressions, ...others])
      assert.equal(await commitOf(pushed, requested), 'ref-not-found', requested);
    assert.equal(await commitOf(pushed, 'refs/notes/commits'), first, 'a full name may be of any folder');
  });

  test('is what its form says, and no name that somebody pushed changes it', async () => {
    const { reading, repository, first, second, commitOf } = await started();
    const pushed = await reading.push(repository, {
      'refs/heads/master': second,
      [`refs/tags/${first}`]: second,
      [`refs/heads/${first.toUpperCase()}`]: second,
      'refs/heads/HEAD': first,
      'refs/tags/v1': second,
      'refs/heads/refs/tags/v1': first,
      [`refs/heads/${'a'.repeat(64)}`]: first,
    });
    for (const [requested, id] of [
      [first, first],
      [first.toUpperCase(), first],
      [`refs/tags/${first}`, second],
      ['HEAD', second],
      ['refs/tags/v1', second],
      ['refs/heads/refs/tags/v1', first],
      ['a'.repeat(64), first],
    ] as const) {
      assert.equal(await commitOf(pushed, requested), id, requested);
    }
  });

  test('is not a commit that only a deleted branch reached, even if its object exists', async () => {
    const { reading, repository, first, second, commitOf } = await started();
    const before = await reading.push(repository, { 'refs/heads/master': first, 'refs/heads/gone': second });
    assert.equal(await commitOf(before, second), second);
    const after = await reading.push(repository, { 'refs/heads/gone': null });
    assert.equal(await commitOf(after, second), 'ref-not-found');
    assert.equal(await commitOf(after, first), first);
    assert.equal(
      await commitOf(before, second),
      second,
      'a view of an earlier revision shows the refs of that revision',
    );
  });

  test('is not found in a repository without refs, nor is a default branch that does not exist', async () => {
    const { reading, repository, first, commitOf } = await started();
    assert.equal(await commitOf(repository, null), 'repository-without-commits');
    assert.equal(await commitOf(repository, 'any'), 'repository-without-commits');
    const tagged = await reading.push(repository, { 'refs/tags/v1': first });
    assert.equal(await commitOf(tagged, null), 'repository-without-commits');
    const pushed = await reading.push(repository, { 'refs/heads/side': first });
    assert.equal(await commitOf(pushed, null), 'default-branch-missing');
    assert.equal(await commitOf(pushed, 'any'), 'ref-not-found');
  });
});
