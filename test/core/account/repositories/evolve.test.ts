/** The state that the events of an account's list of repositories fold into. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import {
  accountCreated,
  repositoryCreated,
  repositoryDeleted,
  repositoryDescribed,
  repositoryId,
} from '../../../support/account-history.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';

const id = repositoryId(1);
const created = repositoryCreated(1, 'Tools', { default_branch: 'trunk' });

function open(...history: readonly AccountEvent[]) {
  const state = given(accounts, accountCreated, ...history);
  assert.ok(state.status === 'open');
  return state;
}

describe("An account's list of repositories", () => {
  test('finds each repository by its id, and by its name without regard to case', () => {
    const state = open(created);
    assert.deepEqual(state.repositories.get(id), {
      id,
      name: 'Tools',
      description: null,
      initialDefaultBranch: 'trunk',
      storageBucketId: null,
      createdAt: plusMs(FIRST_AT, 1_000),
    });
    assert.equal(state.repositoryNames.get('tools'), id);
  });

  test('follows changes of descriptions', () => {
    const state = open(created, repositoryDescribed(1, 'All of them'));
    assert.equal(state.repositories.get(id)?.description, 'All of them');
    assert.equal(state.repositories.size, 1);
  });

  test('drops a deleted repository completely', () => {
    const state = open(created, repositoryDeleted(1, 'Tools'));
    assert.equal(state.repositories.size, 0);
    assert.equal(state.repositoryNames.size, 0);
    assert.equal(state.repositories.weight, 0);
  });

  test('holds a restored repository as it was listed before, under its new name', () => {
    const restored: AccountEvent = {
      type: 'RepositoryRestored',
      data: {
        ...repositoryCreated(1, 'Tools-again', { description: 'All of them', default_branch: 'trunk' }).data,
        created_at: '2026-11-20T10:00:00.000Z',
      },
    };
    const state = open(created, repositoryDeleted(1, 'Tools'), restored);
    assert.deepEqual(state.repositories.get(id), {
      id,
      name: 'Tools-again',
      description: 'All of them',
      initialDefaultBranch: 'trunk',
      storageBucketId: null,
      createdAt: '2026-11-20T10:00:00.000Z',
    });
    assert.deepEqual([state.repositoryNames.get('tools-again'), state.repositoryNames.get('tools')], [id, undefined]);
  });

  test('throws for a change of a repository that does not exist', () => {
    assert.throws(() => open(repositoryDescribed(1, 'x')), TypeError);
  });

  test('has a greater weight the longer its descriptions are', () => {
    const short = accounts.sizeBytes(open(created, repositoryDescribed(1, 'x')));
    const long = accounts.sizeBytes(open(created, repositoryDescribed(1, 'x'.repeat(1_000))));
    assert.ok(long >= short + 999);
    const again = open(created, repositoryDescribed(1, 'x'.repeat(1_000)), repositoryDescribed(1, 'x'));
    assert.equal(accounts.sizeBytes(again), short);
  });
});
