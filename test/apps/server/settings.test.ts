/** The server's settings: what is taken, and what stops the start. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readSettings } from '../../../apps/server/settings.ts';

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
