/** What the server makes of its environment. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readSettings, SettingsError } from '../../../apps/server/settings.ts';

describe('STRATA_ROLES', () => {
  test('runs every role unless told otherwise', () => {
    assert.deepEqual(readSettings({}, '/').roles, ['api', 'git', 'website', 'worker']);
  });

  test('takes one or several, with spaces around them', () => {
    assert.deepEqual(readSettings({ STRATA_ROLES: 'worker' }, '/').roles, ['worker']);
    assert.deepEqual(readSettings({ STRATA_ROLES: 'git, api' }, '/').roles, ['api', 'git']);
  });

  test('refuses what is no role, or no list, by the name of the setting', () => {
    for (const value of ['api,wroker', 'all', 'api,', ',', 'API']) {
      assert.throws(
        () => readSettings({ STRATA_ROLES: value }, '/'),
        (error) =>
          error instanceof SettingsError &&
          error.message.includes(`STRATA_ROLES is ${JSON.stringify(value)}: expected one or more of api, git,`),
        value,
      );
    }
  });
});
