/** What an owner decides of a repository. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RepositoryCommand } from '../../../core/repository/commands.ts';
import { decideRepository } from '../../../core/repository/decide.ts';
import type { RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { given } from '../../support/fold.ts';

const closed: RepositoryEvent = { type: 'RepositoryClosed', data: {} };
const changed = (name: string): RepositoryEvent => ({ type: 'DefaultBranchChanged', data: { default_branch: name } });

function decide(history: readonly RepositoryEvent[], command: RepositoryCommand) {
  const decision = decideRepository(given(repositories, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

function choose(branch: string, history: readonly RepositoryEvent[] = [], initialDefaultBranch: string | null = null) {
  return decide(history, { type: 'ChangeDefaultBranch', branch, initialDefaultBranch });
}

describe('A repository', () => {
  test('takes the default branch its owner chooses', () => {
    assert.deepEqual(choose('trunk'), [changed('trunk')]);
    assert.deepEqual(choose('main', [changed('trunk')]), [changed('main')]);
    assert.deepEqual(choose('main', [], 'trunk'), [changed('main')]);
  });

  test('records the choice of the fallback too, since no push may choose another then', () => {
    assert.deepEqual(choose('master'), [changed('master')]);
  });

  test('records no choice that stands already', () => {
    assert.deepEqual(choose('trunk', [changed('trunk')]), []);
    assert.deepEqual(choose('trunk', [], 'trunk'), []);
    assert.deepEqual(choose('trunk', [changed('main')], 'trunk'), [changed('trunk')]);
  });

  test('is closed once; closing it again is no event, so that a deletion cut in half can go on', () => {
    assert.deepEqual(decide([], { type: 'CloseRepository' }), [closed]);
    assert.deepEqual(decide([closed], { type: 'CloseRepository' }), []);
  });

  test('that is closed takes no default branch', () => {
    assert.equal(choose('main', [closed]), 'repository-not-found');
  });
});
