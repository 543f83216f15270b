/** The use cases of repositories, including interrupted deletions. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { DEFAULT_PLANS } from '../../../../core/account/plans.ts';
import type { RepositoryId } from '../../../../core/kernel/ids.ts';
import type { Failpoint } from '../../../../core/ports/failpoints.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import type { Guarding } from '../../../../core/runtime/execute.ts';
import {
  changeRepository,
  createRepository,
  deleteRepository,
  findRepository,
  findRepositoryById,
} from '../../../../core/use-cases/repositories/repositories.ts';
import { accepted, codeOf, codesOf, newAccount, newRepository } from '../../../support/accounts.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { watchLog } from '../../../support/watched-log.ts';

async function started() {
  const log = watchLog();
  const node = await startNode(log);
  const account = await newAccount(node, 'ada');
  const origin = { account, cause: CAUSE };
  const create = (name: string, more: Partial<Parameters<typeof createRepository>[2]> = {}) =>
    createRepository(node, origin, { name, description: null, defaultBranch: null, storageBucketId: null, ...more });
  return { log, node, account, origin, create };
}

describe('A repository', () => {
  test('is found by its names without regard to case, and by its id', async () => {
    const { node, account, create } = await started();
    const { id } = accepted(await create('My.Tools', { description: 'Tools' }));
    for (const [username, name] of [
      ['ada', 'My.Tools'],
      ['ADA', 'my.tools'],
    ] as const) {
      const found = await findRepository(node, username, name);
      assert.deepEqual(
        [found?.id, found?.accountId, found?.owned.name, found?.owned.description],
        [id, account, 'My.Tools', 'Tools'],
      );
    }
    assert.equal((await findRepositoryById(node, account, id))?.id, id);
  });

  test('is not found by other names, or under another account', async () => {
    const { node, account, create } = await started();
    const { id } = accepted(await create('kk'));
    const bob = await newAccount(node, 'bob');
    // Unicode folds the Kelvin sign to k.
    for (const [username, name] of [
      ['ada', 'k\u212a'],
      ['bob', 'kk'],
      ['nobody', 'kk'],
      ['', ''],
    ] as const) {
      assert.equal(await findRepository(node, username, name), null);
    }
    assert.equal(await findRepositoryById(node, bob, id), null);
    assert.equal(await findRepositoryById(node, account, node.ids.next<RepositoryId>()), null);
  });

  test('has the default branch that its creator named, or else master', async () => {
    const { node, account, create } = await started();
    assert.equal(accepted(await create('a')).defaultBranch, 'master');
    const { id } = accepted(await create('b', { defaultBranch: 'trunk' }));
    assert.equal((await findRepositoryById(node, account, id))?.defaultBranch, 'trunk');
  });

  test('is refused for an invalid branch, an unknown bucket, a taken name and a reached quota', async () => {
    const { node, create } = await started();
    assert.equal(codeOf(await create('a', { defaultBranch: '-x' })), 'branch-name-invalid');
    assert.equal(codeOf(await create('a', { storageBucketId: node.ids.next() })), 'storage-bucket-not-found');
    assert.equal(codeOf(await create('..')), 'repository-name-invalid');
    accepted(await create('a'));
    assert.equal(codeOf(await create('A')), 'repository-name-taken');
    const free = await newAccount(node, 'free', 'FREE');
    const plans = { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, repos: 1 } };
    const wanted = { description: null, defaultBranch: null, storageBucketId: null };
    const createFree = (name: string) =>
      createRepository({ ...node, plans }, { account: free, cause: CAUSE }, { ...wanted, name });
    accepted(await createFree('a'));
    assert.equal(codeOf(await createFree('b')), 'repository-quota-reached');
  });

  test('is created once when many requests race for its name, or for the last place in the quota', async () => {
    const { node, create } = await started();
    const sameName = await Promise.all(Array.from({ length: 10 }, () => create('same')));
    assert.deepEqual(codesOf(sameName), { created: 1, 'repository-name-taken': 9 });
    const free = await newAccount(node, 'free', 'FREE');
    const plans = { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, repos: 3 } };
    const wanted = { description: null, defaultBranch: null, storageBucketId: null };
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        createRepository({ ...node, plans }, { account: free, cause: CAUSE }, { ...wanted, name: `r${n}` }),
      ),
    );
    assert.equal(results.filter((result) => 'id' in result).length, 3);
  });

  test('takes a new description, a new default branch, or both', async () => {
    const { node, origin, create } = await started();
    const { id } = accepted(await create('a'));
    const changed = accepted(
      await changeRepository(node, origin, id, { description: 'Tools', defaultBranch: 'trunk' }),
    );
    assert.deepEqual([changed.owned.description, changed.defaultBranch], ['Tools', 'trunk']);
    const cleared = accepted(await changeRepository(node, origin, id, { description: null }));
    assert.deepEqual([cleared.owned.description, cleared.defaultBranch], [null, 'trunk']);
    assert.equal(codeOf(await changeRepository(node, origin, id, { defaultBranch: 'a..b' })), 'branch-name-invalid');
    assert.equal(
      codeOf(await changeRepository(node, origin, node.ids.next<RepositoryId>(), {})),
      'repository-not-found',
    );
  });
});

describe('A rename', () => {
  const to = (name: string, takesFormerNames = true) => ({ rename: { name, takesFormerNames } });

  test('is one append, also with a description, and keeps the repository', async () => {
    const { log, node, account, origin, create } = await started();
    const { id } = accepted(await create('tools'));
    const before = (await node.entities.reload(accounts, account)).revision;
    const changed = accepted(await changeRepository(node, origin, id, { ...to('Kit'), description: 'All' }));
    assert.deepEqual([changed.id, changed.owned.name, changed.owned.description], [id, 'Kit', 'All']);
    const after = await node.entities.reload(accounts, account);
    assert.equal(Number(after.revision) - Number(before), 2);
    const types = (await log.readStream(after.stream, { direction: 'backwards', limit: 2 })).map(({ type }) => type);
    assert.deepEqual(types, ['RepositoryDescribed', 'RepositoryRenamed']);
    const positions = await log.readStream(after.stream, { direction: 'backwards', limit: 2 });
    assert.equal(new Set(positions.map(({ occurredAt }) => occurredAt)).size, 1);
    assert.equal((await findRepository(node, 'ada', 'kit'))?.id, id);
    assert.equal(await findRepository(node, 'ada', 'tools'), null, 'for who may see all, old names lead nowhere');
  });

  test('changes nothing at all where one of its changes is refused', async () => {
    const { node, account, origin, create } = await started();
    const { id } = accepted(await create('tools'));
    accepted(await create('taken'));
    const { revision } = await node.entities.reload(accounts, account);
    for (const [changes, code] of [
      [{ ...to('TAKEN'), description: 'x' }, 'repository-name-taken'],
      [{ ...to('kit'), description: 'x'.repeat(1_001) }, 'repository-description-length'],
      [{ ...to('a..b'), defaultBranch: 'trunk' }, 'repository-name-invalid'],
    ] as const) {
      assert.equal(codeOf(await changeRepository(node, origin, id, changes)), code);
    }
    assert.equal((await node.entities.reload(accounts, account)).revision, revision);
    assert.equal((await findRepositoryById(node, account, id))?.defaultBranch, 'master');
  });

  test('takes the name that an interrupted deletion still holds', async () => {
    const { node, account, origin, create } = await started();
    const { id } = accepted(await create('tools'));
    const gone = accepted(await create('gone'));
    const failpoint: Failpoint = async () => Promise.reject(new Error('the process dies'));
    await assert.rejects(deleteRepository({ ...node, failpoint }, origin, gone.id), /the process dies/);
    assert.equal(accepted(await changeRepository(node, origin, id, to('gone'))).owned.name, 'gone');
    const { state } = await node.entities.reload(accounts, account);
    assert.ok(state.status === 'open' && state.repositories.size === 1);
  });

  test('of many to one name, at the same moment, is one', async () => {
    const { node, origin, create } = await started();
    const made = [];
    for (const n of [1, 2, 3, 4]) made.push(accepted(await create(`r${n}`)).id);
    const results = await Promise.all(made.map((id) => changeRepository(node, origin, id, to('one'))));
    const codes = results.flatMap((result) => ('refused' in result ? [result.refused.code] : []));
    assert.deepEqual(codes, Array(3).fill('repository-name-taken'));
  });
});

describe('A deletion', () => {
  test('closes the repository before it releases the name', async () => {
    const { log, node, account, origin, create } = await started();
    const { id } = accepted(await create('a'));
    const appended: string[] = [];
    log.on.appended = ({ events }) => void appended.push(...events.map(({ type }) => type));
    const failpoint: Failpoint = async (point) => void appended.push(point);
    assert.deepEqual(await deleteRepository({ ...node, failpoint }, origin, id), { deleted: id });
    assert.deepEqual(appended, ['RepositoryClosed', 'repository-closed', 'RepositoryDeleted']);
    assert.equal(await findRepository(node, 'ada', 'a'), null);
    assert.equal(await findRepositoryById(node, account, id), null);
    assert.equal((await node.entities.get(repositories, id)).state.status, 'closed');
  });

  test('releases the name for another repository, which has nothing of the first one', async () => {
    const { node, origin, create } = await started();
    const { id } = accepted(await create('a', { description: 'old', defaultBranch: 'trunk' }));
    await deleteRepository(node, origin, id);
    const second = accepted(await create('a'));
    assert.notEqual(second.id, id);
    assert.deepEqual([second.owned.description, second.defaultBranch], [null, 'master']);
    assert.equal(codeOf(await deleteRepository(node, origin, id)), 'repository-not-found');
    assert.equal((await findRepository(node, 'ada', 'a'))?.id, second.id);
  });

  test('changes no stream of a repository that another account owns', async () => {
    const { log, node, origin } = await started();
    const bob = await newAccount(node, 'bob');
    const { id } = await newRepository(node, bob, 'bobs');
    const { appends } = log.counts;
    assert.equal(codeOf(await deleteRepository(node, origin, id)), 'repository-not-found');
    assert.equal(codeOf(await deleteRepository(node, origin, node.ids.next<RepositoryId>())), 'repository-not-found');
    assert.equal(log.counts.appends, appends);
    assert.notEqual(await findRepository(node, 'bob', 'bobs'), null);
  });

  test('is refused, and changes nothing, if the guard no longer holds', async () => {
    const { node, origin, create } = await started();
    const { id } = accepted(await create('a'));
    const guarding: Guarding = async () => ({ refused: { code: 'token-no-longer-valid' } });
    assert.equal(codeOf(await deleteRepository(node, { ...origin, guarding }, id)), 'token-no-longer-valid');
    assert.notEqual(await findRepository(node, 'ada', 'a'), null);
  });

  /** Stops the process between the two steps of a deletion. */
  async function cutInHalf() {
    const parts = await started();
    const { id } = accepted(await parts.create('a'));
    parts.log.on.append = ({ events }) => {
      if (events[0]?.type === 'RepositoryDeleted') throw new Error('killed');
    };
    await assert.rejects(deleteRepository(parts.node, parts.origin, id), /killed/);
    parts.log.on.append = undefined;
    const node = await startNode(parts.log);
    return { ...parts, node, id };
  }

  test('hides the repository from everybody if it is interrupted', async () => {
    const { node, account, origin, id } = await cutInHalf();
    assert.equal(await findRepository(node, 'ada', 'a'), null);
    assert.equal(await findRepositoryById(node, account, id), null);
    assert.equal(codeOf(await changeRepository(node, origin, id, { description: 'x' })), 'repository-not-found');
  });

  test('is finished by a repeated request after it was interrupted', async () => {
    const { node, account, origin, id } = await cutInHalf();
    assert.deepEqual(await deleteRepository(node, origin, id), { deleted: id });
    const { state } = await node.entities.get(accounts, account);
    assert.equal(state.status === 'open' ? state.repositories.size : null, 0);
  });

  test('is finished by a request that needs the name after it was interrupted', async () => {
    const { node, account, origin, id } = await cutInHalf();
    const wanted = { name: 'A', description: null, defaultBranch: null, storageBucketId: null };
    const created = accepted(await createRepository(node, origin, wanted));
    assert.notEqual(created.id, id);
    const { state } = await node.entities.get(accounts, account);
    assert.equal(state.status === 'open' ? state.repositories.size : null, 1);
  });

  test('is done only once when many requests race', async () => {
    const { log, node, origin, id } = await cutInHalf();
    const types: string[] = [];
    log.on.appended = ({ events }) => void types.push(...events.map(({ type }) => type));
    const results = await Promise.all(Array.from({ length: 5 }, () => deleteRepository(node, origin, id)));
    assert.deepEqual(results.map(codeOf), [null, null, null, null, null]);
    assert.deepEqual(types, ['RepositoryDeleted']);
  });
});
