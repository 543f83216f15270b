/** How somebody who starts a server gets a first account. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { greeting } from '../../../apps/server/greeting.ts';
import { readSettings } from '../../../apps/server/settings.ts';

function firstAccount(env: Readonly<Record<string, string>>): string {
  const line =
    greeting(readSettings(env, '/srv'))
      .split('\n')
      .find((text) => text.includes('First account')) ?? '';
  return line.replace('First account', '').trim();
}

describe('The greeting of a server', () => {
  test('sends to the sign-up page where anybody may sign up', () => {
    assert.equal(firstAccount({}), 'http://localhost:8080/sign-up');
  });

  test('names the command of the operator where strangers cannot sign up, and where no website runs', () => {
    assert.match(firstAccount({ STRATA_SIGN_UP: 'closed' }), /strata-admin -- account create/);
    assert.match(firstAccount({ STRATA_ROLES: 'api,git,worker' }), /strata-admin -- account create/);
  });
});
