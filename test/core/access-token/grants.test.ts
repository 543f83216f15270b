/** The full matrix of which grant passes which check. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { GRANTS, type Grant, permits } from '../../../core/kernel/grants.ts';

const ALSO: { readonly [G in Grant]?: readonly Grant[] } = {
  ALL: GRANTS,
  GIT_HTTP_WRITE: ['GIT_HTTP_READ'],
  API_REPOS_WRITE: ['API_REPOS_READ'],
};

test('each grant passes its own check and those it implies, and no others', () => {
  for (const held of GRANTS) {
    for (const needed of GRANTS) {
      const expected = held === needed || ALSO[held]?.includes(needed) === true;
      assert.equal(permits([held], needed), expected, `${held} for ${needed}`);
    }
  }
});

test('several grants pass what any of them passes; none passes nothing', () => {
  assert.equal(permits(['API_WEBHOOKS', 'GIT_HTTP_WRITE'], 'GIT_HTTP_READ'), true);
  assert.equal(permits(['API_WEBHOOKS', 'API_STORAGE'], 'API_OIDC_TRUST'), false);
  for (const needed of GRANTS) assert.equal(permits([], needed), false);
});
