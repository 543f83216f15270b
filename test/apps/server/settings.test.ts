/** The server's settings: what is taken, and what stops the start. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readSettings, SettingsError } from '../../../apps/server/settings.ts';

describe('STRATA_ALLOW_PRIVATE_TARGETS', () => {
  const read = (value?: string) =>
    readSettings(value === undefined ? {} : { STRATA_ALLOW_PRIVATE_TARGETS: value }, '/').allowPrivateTargets;

  test('is false until it is set to true', () => {
    assert.equal(read(), false);
    assert.equal(read(''), false);
    assert.equal(read('false'), false);
    assert.equal(read('true'), true);
  });

  test('stops the start with anything else, and says what was expected', () => {
    for (const value of ['1', 'TRUE', 'yes', ' true']) {
      assert.throws(() => read(value), {
        name: 'SettingsError',
        message: /STRATA_ALLOW_PRIVATE_TARGETS is .*: expected one of true, false/,
      });
    }
  });
});

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
