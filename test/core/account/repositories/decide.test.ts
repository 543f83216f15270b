/** The decisions about an account's list of repositories. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { DEFAULT_PLANS, type PlanQuotas } from '../../../../core/account/plans.ts';
import type { OwnedRepositoryCommand } from '../../../../core/account/repositories/commands.ts';
import { decideOwnedRepository } from '../../../../core/account/repositories/decide.ts';
import {
  accountClosed,
  accountCreated,
  accountErased,
  repositoryCreated,
  repositoryDeleted,
  repositoryDescribed,
  repositoryId,
  repositoryRenamed,
} from '../../../support/account-history.ts';
import { given } from '../../../support/fold.ts';

type CreateRepository = Extract<OwnedRepositoryCommand, { type: 'CreateRepository' }>;

function create(n: number, name: string, more: Partial<CreateRepository> = {}): CreateRepository {
  const chosen = { description: null, defaultBranch: null, storageBucketId: null };
  return { type: 'CreateRepository', id: repositoryId(n), name, ...chosen, quotas: DEFAULT_PLANS.PRO, ...more };
}

const reposOf = (repos: number | null): PlanQuotas => ({ ...DEFAULT_PLANS.FREE, repos });

function rename(n: number, name: string, takesFormerNames = true): OwnedRepositoryCommand {
  return { type: 'RenameRepository', id: repositoryId(n), name, takesFormerNames };
}

/** Returns the events, or the code of the refusal. */
function decide(history: readonly AccountEvent[], command: OwnedRepositoryCommand) {
  const decision = decideOwnedRepository(given(accounts, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

describe("An account's repositories", () => {
  test('are created with all settings that their creator chose', () => {
    const chosen = { description: 'Tools', defaultBranch: 'trunk' };
    assert.deepEqual(decide([accountCreated], create(1, 'Tools', chosen)), [
      {
        type: 'RepositoryCreated',
        data: {
          repository_id: repositoryId(1),
          name: 'Tools',
          description: 'Tools',
          default_branch: 'trunk',
          storage_bucket_id: null,
        },
      },
    ]);
  });

  test('have valid names that are unique without regard to case', () => {
    assert.equal(decide([accountCreated], create(1, 'a..b')), 'repository-name-invalid');
    assert.equal(decide([accountCreated, repositoryCreated(1, 'Tools')], create(2, 'tOOLS')), 'repository-name-taken');
  });

  test('release their names when they are deleted', () => {
    const history = [accountCreated, repositoryCreated(1, 'Tools')];
    assert.deepEqual(decide(history, { type: 'DeleteRepository', id: repositoryId(1) }), [
      repositoryDeleted(1, 'Tools'),
    ]);
    assert.notEqual(decide([...history, repositoryDeleted(1, 'Tools')], create(2, 'tools')), 'repository-name-taken');
  });

  test('can be as many as the quota allows, and no more', () => {
    const two = [accountCreated, repositoryCreated(1, 'a'), repositoryCreated(2, 'b')];
    assert.equal(typeof decide(two, create(3, 'c', { quotas: reposOf(3) })), 'object');
    assert.equal(decide(two, create(3, 'c', { quotas: reposOf(2) })), 'repository-quota-reached');
    assert.equal(decide(two, create(3, 'c', { quotas: reposOf(1) })), 'repository-quota-reached');
    assert.equal(decide([accountCreated], create(1, 'a', { quotas: reposOf(0) })), 'repository-quota-reached');
    assert.equal(typeof decide(two, create(3, 'c', { quotas: reposOf(null) })), 'object');
    assert.equal(typeof decide([...two, repositoryDeleted(1, 'a')], create(3, 'c', { quotas: reposOf(2) })), 'object');
  });

  test('have descriptions of up to 1,000 code points', () => {
    const history = [accountCreated, repositoryCreated(1, 'a')];
    for (const character of ['x', 'é', '😀']) {
      const [full, over] = [character.repeat(1_000), character.repeat(1_001)];
      const describe = (description: string): OwnedRepositoryCommand => ({
        type: 'DescribeRepository',
        id: repositoryId(1),
        description,
      });
      assert.equal(typeof decide(history, describe(full)), 'object');
      assert.equal(decide(history, describe(over)), 'repository-description-length');
      assert.equal(typeof decide(history, create(2, 'b', { description: full })), 'object');
      assert.equal(decide(history, create(2, 'b', { description: over })), 'repository-description-length');
    }
  });

  test('can change or lose their description; the same description again makes no event', () => {
    const history = [accountCreated, repositoryCreated(1, 'a'), repositoryDescribed(1, 'Tools')];
    const describe = (description: string | null): OwnedRepositoryCommand => ({
      type: 'DescribeRepository',
      id: repositoryId(1),
      description,
    });
    assert.deepEqual(decide(history, describe('Tools')), []);
    assert.deepEqual(decide(history, describe(null)), [repositoryDescribed(1, null)]);
  });

  test('get another name by an event that has both; the same name again makes no event', () => {
    const history = [accountCreated, repositoryCreated(1, 'Tools')];
    assert.deepEqual(decide(history, rename(1, 'Kit')), [repositoryRenamed(1, 'Tools', 'Kit')]);
    assert.deepEqual(decide(history, rename(1, 'tools')), [repositoryRenamed(1, 'Tools', 'tools')]);
    assert.deepEqual(decide(history, rename(1, 'Tools')), []);
  });

  test('take no name that is not valid, or that another repository has', () => {
    const history = [accountCreated, repositoryCreated(1, 'Tools'), repositoryCreated(2, 'Kit')];
    assert.equal(decide(history, rename(1, 'a..b')), 'repository-name-invalid');
    assert.equal(decide(history, rename(1, 'kIT')), 'repository-name-taken');
    const legacy = [accountCreated, repositoryCreated(1, 'con')];
    assert.deepEqual(decide(legacy, rename(1, 'con')), [], 'the name that it has may be written back');
  });

  test('take an old name of another repository only where that is asked for, and one of their own always', () => {
    const history = [
      ...[accountCreated, repositoryCreated(1, 'Tools'), repositoryRenamed(1, 'Tools', 'Kit')],
      repositoryCreated(2, 'other'),
    ];
    assert.deepEqual(decide(history, rename(2, 'tools')), [repositoryRenamed(2, 'other', 'tools')]);
    assert.equal(decide(history, rename(2, 'tools', false)), 'repository-name-taken');
    assert.deepEqual(decide(history, rename(1, 'tools', false)), [repositoryRenamed(1, 'Kit', 'tools')]);
    assert.equal(typeof decide(history, create(3, 'tools')), 'object');
    const deleted = [...history, repositoryDeleted(1, 'Kit')];
    assert.deepEqual(decide(deleted, rename(2, 'tools', false)), [repositoryRenamed(2, 'other', 'tools')]);
  });

  test('are neither described nor deleted if they do not exist', () => {
    for (const history of [[accountCreated], [accountCreated, repositoryCreated(1, 'a'), repositoryDeleted(1, 'a')]]) {
      const id = repositoryId(1);
      assert.equal(decide(history, { type: 'DescribeRepository', id, description: null }), 'repository-not-found');
      assert.equal(decide(history, { type: 'DeleteRepository', id }), 'repository-not-found');
      assert.equal(decide(history, rename(1, 'b')), 'repository-not-found');
    }
  });

  test('can only be deleted, one by one, after the account was erased', () => {
    const history = [accountCreated, repositoryCreated(1, 'Tools'), accountErased];
    assert.deepEqual(decide(history, { type: 'DeleteRepository', id: repositoryId(1) }), [
      repositoryDeleted(1, 'Tools'),
    ]);
    assert.equal(decide(history, { type: 'DeleteRepository', id: repositoryId(2) }), 'repository-not-found');
    assert.equal(decide(history, create(2, 'a')), 'account-not-found');
    assert.equal(
      decide(history, { type: 'DescribeRepository', id: repositoryId(1), description: null }),
      'account-not-found',
    );
  });

  test('cannot be created or described while the account is closed, but an interrupted deletion can be finished', () => {
    const history = [accountCreated, repositoryCreated(1, 'Tools'), accountClosed];
    assert.deepEqual(decide(history, { type: 'DeleteRepository', id: repositoryId(1) }), [
      repositoryDeleted(1, 'Tools'),
    ]);
    assert.equal(decide(history, create(2, 'a')), 'account-not-found');
    const described = { type: 'DescribeRepository', id: repositoryId(1), description: null } as const;
    assert.equal(decide(history, described), 'account-not-found');
    assert.equal(decide(history, rename(1, 'b')), 'account-not-found');
  });

  test('need an existing account', () => {
    for (const history of [[], [{ type: 'Abandoned', data: {} } satisfies AccountEvent]]) {
      for (const command of [
        create(1, 'a'),
        { type: 'DescribeRepository', id: repositoryId(1), description: null },
        rename(1, 'b'),
        { type: 'DeleteRepository', id: repositoryId(1) },
      ] satisfies OwnedRepositoryCommand[]) {
        assert.equal(decide(history, command), 'account-not-found');
      }
    }
  });
});
