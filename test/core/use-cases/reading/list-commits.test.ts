/** Pages of commits: which ref is listed, and that the model and the objects give the same pages. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { COMMIT_LISTED_NAME_LENGTH_MAX } from '../../../../core/git/history/listed-commit.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import {
  COMMIT_CROWDED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_MESSAGE_LENGTH_MAX,
  COMMITS_PAGE_BYTES_MAX,
} from '../../../../core/kernel/limits.ts';
import { listCommits, type WantedCommits } from '../../../../core/use-cases/reading/list-commits.ts';
import { versionOf } from '../../../../core/use-cases/reading/repository-view.ts';
import { changeRepository, deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { accepted, codeOf } from '../../../support/accounts.ts';
import { CAUSE } from '../../../support/node.ts';
import { type Reading, startReading } from '../../../support/reading.ts';

const PAGE = { offset: 0, limit: 50 };
const OF_DEFAULT: WantedCommits = { ref: null, ofPath: null, page: PAGE };

async function started() {
  const reading = await startReading();
  const repository = await reading.repository('r');
  const origin = { account: reading.account, cause: CAUSE };
  return { reading, repository, origin, tree: reading.objects.tree({}) };
}

/** Returns a line of commits, oldest first. */
function line({ objects }: Reading, tree: ObjectId, length: number): readonly ObjectId[] {
  const ids: ObjectId[] = [];
  for (let seconds = 1; seconds <= length; seconds += 1) {
    ids.push(objects.commit({ tree, seconds, parents: ids.slice(-1) }));
  }
  return ids;
}

const idsOf = (list: Awaited<ReturnType<typeof listCommits>>): readonly ObjectId[] =>
  accepted(list).commits.map(({ id }) => id);

describe('A list of commits', () => {
  test('is refused for a repository without commits, whatever ref is requested', async () => {
    const { reading, repository } = await started();
    for (const ref of [null, 'master', 'main', 'a'.repeat(40)]) {
      assert.equal(
        codeOf(await listCommits(reading.node, repository, { ref, ofPath: null, page: PAGE })),
        'repository-without-commits',
      );
    }
    assert.equal(reading.modelReads, 0);
  });

  test('is refused for a default branch that does not exist, but not for another branch', async () => {
    const { reading, repository, tree } = await started();
    const [only] = line(reading, tree, 1);
    const pushed = await reading.push(repository, { 'refs/heads/side': only ?? null });
    assert.equal(codeOf(await listCommits(reading.node, pushed, OF_DEFAULT)), 'default-branch-missing');
    assert.equal(
      codeOf(await listCommits(reading.node, pushed, { ref: 'master', ofPath: null, page: PAGE })),
      'ref-not-found',
    );
    assert.deepEqual(idsOf(await listCommits(reading.node, pushed, { ref: 'side', ofPath: null, page: PAGE })), [only]);
  });

  test('reads the model and opens no objects for the default branch', async () => {
    const { reading, repository, tree } = await started();
    const ids = line(reading, tree, 3);
    const pushed = await reading.push(repository, { 'refs/heads/master': ids.at(-1) ?? null });
    const objects = {
      open: () => {
        throw new Error('A list of the default branch opens no objects');
      },
    };
    for (const ref of [null, 'master']) {
      const list = accepted(await listCommits({ ...reading.node, objects }, pushed, { ref, ofPath: null, page: PAGE }));
      assert.deepEqual([list.ref, list.version], ['master', versionOf(pushed)]);
      assert.deepEqual(idsOf(list), ids.toReversed());
    }
    assert.equal(reading.modelReads, 2);
  });

  test('is the same, row by row and page by page, from the model and from the objects', async () => {
    const { reading, repository, tree } = await started();
    const tip = line(reading, tree, 7).at(-1) ?? null;
    const pushed = await reading.push(repository, { 'refs/heads/master': tip, 'refs/heads/copy': tip });
    for (const page of [
      { offset: 0, limit: 3 },
      { offset: 6, limit: 3 },
      { offset: 7, limit: 3 },
      { offset: Number.MAX_SAFE_INTEGER - 3, limit: 3 },
    ]) {
      const fromModel = accepted(await listCommits(reading.node, pushed, { ref: null, ofPath: null, page }));
      const fromObjects = accepted(await listCommits(reading.node, pushed, { ref: 'copy', ofPath: null, page }));
      assert.deepEqual(fromObjects, { ...fromModel, ref: 'copy' });
      assert.deepEqual([fromModel.total, fromModel.hasMore], [7, page.offset === 0]);
    }
  });

  test('shows texts up to their limits, and cuts longer ones as the model does', async () => {
    const { reading, repository, tree } = await started();
    const name = 'n'.repeat(COMMIT_LISTED_NAME_LENGTH_MAX);
    const message = 'm'.repeat(COMMIT_LISTED_MESSAGE_LENGTH_MAX);
    const commit = (more: string) => {
      const author = { name: name + more, email: name + more };
      return reading.objects.commit({ tree, seconds: 1, message: message + more, author });
    };
    const branches = { 'refs/heads/at': commit(''), 'refs/heads/past': commit('x') };
    const pushed = await reading.push(repository, branches);
    for (const ref of ['at', 'past']) {
      const [row] = accepted(await listCommits(reading.node, pushed, { ref, ofPath: null, page: PAGE })).commits;
      assert.equal(row?.message, message, ref);
      assert.deepEqual(row?.author, { name, email: name }, ref);
    }
  });

  // The attack: a hundred commits with the longest messages made each page of them ten times as large as all others.
  test('cuts long messages further on a page that would be too large, as the model does, and marks them', async () => {
    const { reading, repository, tree } = await started();
    const message = 'm'.repeat(COMMIT_LISTED_MESSAGE_LENGTH_MAX);
    const fits = Math.floor(COMMITS_PAGE_BYTES_MAX / (COMMIT_LISTED_MESSAGE_LENGTH_MAX + 300));
    let parents: ObjectId[] = [];
    for (let seconds = 0; seconds <= fits + 1; seconds += 1) {
      parents = [reading.objects.commit({ tree, seconds, message, parents })];
    }
    const [tip = null] = parents;
    const pushed = await reading.push(repository, { 'refs/heads/master': tip, 'refs/heads/copy': tip });
    const cut = `${'m'.repeat(COMMIT_CROWDED_MESSAGE_LENGTH_MAX - 1)}…`;
    for (const ref of [null, 'copy']) {
      const messages = async (limit: number) => {
        const page = { offset: 0, limit };
        return accepted(await listCommits(reading.node, pushed, { ref, ofPath: null, page })).commits.map(
          (row) => row.message,
        );
      };
      assert.deepEqual(new Set(await messages(fits)), new Set([message]), `${ref}`);
      assert.deepEqual(new Set(await messages(fits + 1)), new Set([cut]), `${ref}`);
    }
  });

  test('counts a history once for each tip, and walks no page beyond its end', async () => {
    const { reading, repository, tree } = await started();
    const tip = line(reading, tree, 7).at(-1) ?? null;
    const pushed = await reading.push(repository, { 'refs/heads/copy': tip });
    let [walks, counts] = [0, 0];
    let fails = false;
    const objects: typeof reading.node.objects = {
      ...reading.node.objects,
      open: async (committed) => {
        const reader = await reading.node.objects.open(committed);
        return {
          ...reader,
          walk: (options) => {
            walks += 1;
            return reader.walk(options);
          },
          count: async (id) => {
            counts += 1;
            if (fails) {
              fails = false;
              throw new Error('An outage');
            }
            return reader.count(id);
          },
        };
      },
    };
    const node = { ...reading.node, objects };
    const page = async (offset: number): Promise<number | null> =>
      accepted(await listCommits(node, pushed, { ref: 'copy', ofPath: null, page: { offset, limit: 3 } })).total;
    fails = true;
    const outcomes = await Promise.allSettled([page(0), page(3), page(7)]);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : 'failed')),
      ['failed', 7, 7],
      'whoever waited for the count that failed counts again',
    );
    assert.deepEqual([counts, walks], [2, 1], 'one count for both, and a walk for the page that has commits');
    [walks, counts] = [0, 0];
    assert.deepEqual([await page(0), await page(3), await page(7)], [7, 7, 7]);
    assert.deepEqual([counts, walks], [0, 2]);
  });

  test('lists the named branch even if another one became the default branch since the request', async () => {
    const { reading, repository, origin, tree } = await started();
    const [first, second] = line(reading, tree, 2);
    const known = await reading.push(repository, {
      'refs/heads/master': first ?? null,
      'refs/heads/trunk': second ?? null,
    });
    reading.beforeRead = async () => {
      reading.beforeRead = null;
      accepted(await changeRepository(reading.node, origin, repository.id, { defaultBranch: 'trunk' }));
    };
    const asked = accepted(await listCommits(reading.node, known, { ref: 'master', ofPath: null, page: PAGE }));
    assert.deepEqual([asked.ref, idsOf(asked)], ['master', [first]]);
    assert.equal(asked.version, versionOf(await reading.current(repository)));
    const fallback = accepted(await listCommits(reading.node, known, OF_DEFAULT));
    assert.deepEqual([fallback.ref, idsOf(fallback)], ['trunk', [second, first]]);
  });

  test('lists a tag that was named if only the tag has the name of the default branch', async () => {
    const { reading, repository, tree } = await started();
    const [first] = line(reading, tree, 1);
    const pushed = await reading.push(repository, { 'refs/tags/master': first ?? null });
    assert.deepEqual(idsOf(await listCommits(reading.node, pushed, { ref: 'master', ofPath: null, page: PAGE })), [
      first,
    ]);
    assert.equal(codeOf(await listCommits(reading.node, pushed, OF_DEFAULT)), 'repository-without-commits');
  });

  test('is refused if the repository is deleted before it is read', async () => {
    const { reading, repository, origin, tree } = await started();
    const [first] = line(reading, tree, 1);
    const known = await reading.push(repository, { 'refs/heads/master': first ?? null });
    reading.beforeRead = async () => {
      reading.beforeRead = null;
      await deleteRepository(reading.node, origin, repository.id);
    };
    assert.equal(codeOf(await listCommits(reading.node, known, OF_DEFAULT)), 'repository-not-found');
  });

  test('leaves no objects open, whether it succeeds, is refused or fails', async () => {
    const { reading, repository, tree } = await started();
    const tip = line(reading, tree, 3).at(-1) ?? null;
    const pushed = await reading.push(repository, { 'refs/heads/copy': tip });
    accepted(await listCommits(reading.node, pushed, { ref: 'copy', ofPath: null, page: PAGE }));
    assert.equal(
      codeOf(await listCommits(reading.node, pushed, { ref: 'none', ofPath: null, page: PAGE })),
      'ref-not-found',
    );
    const commitTotals = {
      get: () => {
        throw new Error('A fault');
      },
      set: () => undefined,
      underWay: new Map(),
    };
    await assert.rejects(
      listCommits({ ...reading.node, commitTotals }, pushed, { ref: 'copy', ofPath: null, page: PAGE }),
    );
    assert.equal(reading.objects.openReaders(), 0);
  });
});
