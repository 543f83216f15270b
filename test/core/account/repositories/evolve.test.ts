/** The state that the events of an account's list of repositories fold into. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { DELETED_FORMER_NAMES_MAX, REPOSITORY_FORMER_NAMES_MAX } from '../../../../core/account/repositories/limits.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import {
  accountCreated,
  repositoryCreated,
  repositoryDeleted,
  repositoryDescribed,
  repositoryId,
  repositoryRenamed,
} from '../../../support/account-history.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';

const id = repositoryId(1);
const created = repositoryCreated(1, 'Tools', { default_branch: 'trunk' });

function restored(n: number, name: string): AccountEvent {
  const created_at = '2026-11-20T10:00:00.000Z';
  return { type: 'RepositoryRestored', data: { ...repositoryCreated(n, name).data, created_at } };
}

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
      formerNames: [],
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
    const again: AccountEvent = {
      type: 'RepositoryRestored',
      data: {
        ...repositoryCreated(1, 'Tools-again', { description: 'All of them', default_branch: 'trunk' }).data,
        created_at: '2026-11-20T10:00:00.000Z',
      },
    };
    const state = open(created, repositoryDeleted(1, 'Tools'), again);
    assert.deepEqual(state.repositories.get(id), {
      id,
      name: 'Tools-again',
      description: 'All of them',
      initialDefaultBranch: 'trunk',
      storageBucketId: null,
      createdAt: '2026-11-20T10:00:00.000Z',
      formerNames: [],
    });
    assert.deepEqual([state.repositoryNames.get('tools-again'), state.repositoryNames.get('tools')], [id, undefined]);
  });

  test('has a renamed repository under its new name, to which the old one leads', () => {
    const state = open(created, repositoryDescribed(1, 'All of them'), repositoryRenamed(1, 'Tools', 'Kit'));
    assert.deepEqual(
      [state.repositories.get(id)?.name, state.repositories.get(id)?.description],
      ['Kit', 'All of them'],
    );
    assert.deepEqual([...state.repositoryNames.entries()], [['kit', id]]);
    assert.deepEqual([...state.formerNames.entries()], [['tools', id]]);
    assert.deepEqual(state.repositories.get(id)?.formerNames, ['Tools']);
  });

  test('has no old name of a repository whose name changed in its case alone', () => {
    const state = open(created, repositoryRenamed(1, 'Tools', 'tOOLS'));
    assert.equal(state.repositories.get(id)?.name, 'tOOLS');
    assert.deepEqual([...state.repositoryNames.entries()], [['tools', id]]);
    assert.equal(state.formerNames.size, 0);
  });

  test(`keeps the newest ${REPOSITORY_FORMER_NAMES_MAX} old names of a repository, the newest first`, () => {
    const names = Array.from({ length: REPOSITORY_FORMER_NAMES_MAX + 2 }, (_, n) => `Name-${n}`);
    const renames = names.slice(1).map((name, n) => repositoryRenamed(1, `Name-${n}`, name));
    const full = open(repositoryCreated(1, 'Name-0'), ...renames.slice(0, -1));
    assert.deepEqual(full.repositories.get(id)?.formerNames, names.slice(0, -2).toReversed());
    assert.equal(full.formerNames.size, REPOSITORY_FORMER_NAMES_MAX);
    const over = open(repositoryCreated(1, 'Name-0'), ...renames);
    assert.deepEqual(over.repositories.get(id)?.formerNames, names.slice(1, -1).toReversed());
    assert.equal(over.formerNames.size, REPOSITORY_FORMER_NAMES_MAX);
    assert.equal(over.formerNames.get('name-0'), undefined);
  });

  test('lets an old name lead nowhere once a creation, an undeletion or a rename has taken it', () => {
    const second = repositoryId(2);
    const before = [created, repositoryRenamed(1, 'Tools', 'Kit')];
    const other = repositoryCreated(2, 'other');
    const takers: readonly (readonly AccountEvent[])[] = [
      [repositoryCreated(2, 'TOOLS')],
      [other, repositoryDeleted(2, 'other'), restored(2, 'TOOLS')],
      [other, repositoryRenamed(2, 'other', 'TOOLS')],
    ];
    for (const taker of takers) {
      const state = open(...before, ...taker);
      assert.equal(state.repositoryNames.get('tools'), second);
      assert.equal(state.formerNames.get('tools'), undefined);
      assert.deepEqual(state.repositories.get(id)?.formerNames, []);
      // It does not lead on again when whoever took it has another name, but to that one.
      const left = open(...before, ...taker, repositoryRenamed(2, 'TOOLS', 'third'));
      assert.equal(left.formerNames.get('tools'), second);
    }
  });

  test('gives a repository an old name of its own back', () => {
    const back = open(created, repositoryRenamed(1, 'Tools', 'Kit'), repositoryRenamed(1, 'Kit', 'tools'));
    assert.deepEqual([...back.repositoryNames.entries()], [['tools', id]]);
    assert.deepEqual([...back.formerNames.entries()], [['kit', id]]);
    assert.deepEqual(back.repositories.get(id)?.formerNames, ['Kit']);
  });

  test('lets the old names of a deleted repository lead on again when it is undeleted, under whichever name', () => {
    const deleted = [created, repositoryRenamed(1, 'Tools', 'Kit'), repositoryDeleted(1, 'Kit')];
    const gone = open(...deleted);
    assert.deepEqual([gone.repositories.size, gone.repositoryNames.size, gone.repositories.weight], [0, 0, 0]);
    assert.deepEqual(gone.deletedFormerNames, [{ id, formerNames: ['Tools'] }]);
    for (const name of ['Kit', 'other']) {
      const back = open(...deleted, restored(1, name));
      assert.deepEqual([...back.formerNames.entries()], [['tools', id]]);
      assert.deepEqual([back.repositories.get(id)?.formerNames, back.deletedFormerNames], [['Tools'], []]);
    }
    const own = open(...deleted, restored(1, 'TOOLS'));
    assert.deepEqual([own.repositories.get(id)?.formerNames, own.formerNames.size], [[], 0]);
    const again = open(...deleted, restored(1, 'Kit'), repositoryDeleted(1, 'Kit'), restored(1, 'Kit'));
    assert.deepEqual(again.repositories.get(id)?.formerNames, ['Tools']);
  });

  test('lets no old name lead to an undeleted repository that another one has taken since', () => {
    const renames = [repositoryRenamed(1, 'Tools', 'Kit'), repositoryRenamed(1, 'Kit', 'Set')];
    const deleted = [created, ...renames, repositoryDeleted(1, 'Set')];
    const takers: readonly (readonly AccountEvent[])[] = [
      [repositoryCreated(2, 'TOOLS'), repositoryDeleted(2, 'TOOLS')],
      [repositoryCreated(2, 'x'), repositoryRenamed(2, 'x', 'TOOLS'), repositoryRenamed(2, 'TOOLS', 'x')],
    ];
    for (const taker of takers) {
      const back = open(...deleted, ...taker, restored(1, 'Set'));
      assert.deepEqual(back.repositories.get(id)?.formerNames, ['Kit']);
      assert.notEqual(back.formerNames.get('tools'), id);
    }
    const none = open(...deleted, repositoryCreated(2, 'tools'), repositoryCreated(3, 'kit'));
    assert.deepEqual([none.deletedFormerNames, none.formerNames.size], [[], 0]);
  });

  test(`keeps what led to the newest ${DELETED_FORMER_NAMES_MAX} deleted repositories`, () => {
    const gone = (n: number): readonly AccountEvent[] => [
      repositoryCreated(n, `before-${n}`),
      repositoryRenamed(n, `before-${n}`, `after-${n}`),
      repositoryDeleted(n, `after-${n}`),
    ];
    const numbers = Array.from({ length: DELETED_FORMER_NAMES_MAX }, (_, n) => n + 1);
    const full = open(...numbers.flatMap(gone));
    assert.equal(full.deletedFormerNames.length, DELETED_FORMER_NAMES_MAX);
    assert.equal(full.formerNames.get('before-1'), id);
    // A deletion of a repository that was never renamed takes no place.
    const over = [...numbers.flatMap(gone), repositoryCreated(90, 'x'), repositoryDeleted(90, 'x'), ...gone(91)];
    const { deletedFormerNames, formerNames } = open(...over);
    assert.deepEqual(
      deletedFormerNames.map((deleted) => deleted.id),
      [91, ...numbers.slice(1).toReversed()].map(repositoryId),
    );
    assert.deepEqual([formerNames.get('before-1'), formerNames.size], [undefined, DELETED_FORMER_NAMES_MAX]);
    assert.deepEqual(open(...over, restored(1, 'after-1')).repositories.get(id)?.formerNames, []);
    assert.ok(accounts.sizeBytes(full) >= accounts.sizeBytes(open()) + 200 * DELETED_FORMER_NAMES_MAX);
  });

  test('weighs the old names of a repository', () => {
    const before = accounts.sizeBytes(open(created));
    const renamed = accounts.sizeBytes(open(created, repositoryRenamed(1, 'Tools', 'tolos')));
    assert.ok(renamed >= before + 100);
    const back = open(
      ...[created, repositoryRenamed(1, 'Tools', 'tolos'), repositoryCreated(2, 'Tools')],
      repositoryDeleted(2, 'Tools'),
    );
    assert.equal(accounts.sizeBytes(back), before);
  });

  test('throws for a change of a repository that does not exist', () => {
    assert.throws(() => open(repositoryDescribed(1, 'x')), TypeError);
    assert.throws(() => open(repositoryRenamed(1, 'x', 'y')), TypeError);
  });

  test('has a greater weight the longer its descriptions are', () => {
    const short = accounts.sizeBytes(open(created, repositoryDescribed(1, 'x')));
    const long = accounts.sizeBytes(open(created, repositoryDescribed(1, 'x'.repeat(1_000))));
    assert.ok(long >= short + 999);
    const again = open(created, repositoryDescribed(1, 'x'.repeat(1_000)), repositoryDescribed(1, 'x'));
    assert.equal(accounts.sizeBytes(again), short);
  });
});
