/** The decisions of a repository's owner. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
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
  test('takes the default branch that its owner chooses', () => {
    assert.deepEqual(choose('trunk'), [changed('trunk')]);
    assert.deepEqual(choose('main', [changed('trunk')]), [changed('main')]);
    assert.deepEqual(choose('main', [], 'trunk'), [changed('main')]);
  });

  test('records the choice of the fallback too, so that no push chooses another one later', () => {
    assert.deepEqual(choose('master'), [changed('master')]);
  });

  test('makes no event for the choice of the current default branch', () => {
    assert.deepEqual(choose('trunk', [changed('trunk')]), []);
    assert.deepEqual(choose('trunk', [], 'trunk'), []);
    assert.deepEqual(choose('trunk', [changed('main')], 'trunk'), [changed('trunk')]);
  });

  test('is closed only once; closing it again makes no event, so that an interrupted deletion can continue', () => {
    assert.deepEqual(decide([], { type: 'CloseRepository' }), [closed]);
    assert.deepEqual(decide([closed], { type: 'CloseRepository' }), []);
  });

  test('refuses a default branch while it is closed', () => {
    assert.equal(choose('main', [closed]), 'repository-not-found');
  });
});
