/** How somebody who starts a server gets a first account. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { greeting } from '../../../apps/server/greeting.ts';
import { readSettings } from '../../../apps/server/settings.ts';

type Environment = Readonly<Record<string, string>>;

function lineOf(label: string, env: Environment, hasAccount = false): string {
  const lines = greeting(readSettings(env, '/srv'), hasAccount).split('\n');
  const line = lines.find((text) => text.includes(label)) ?? '';
  return line.replace(label, '').trim();
}

const firstAccount = (env: Environment, hasAccount = false): string => lineOf('First account', env, hasAccount);

describe('The greeting of a server', () => {
  test('sends to the sign-up page where anybody may sign up', () => {
    assert.equal(firstAccount({}), 'http://localhost:8080/sign-up');
  });

  test('says nothing of a first account where there is one', () => {
    assert.equal(firstAccount({}, true), '');
  });

  test('names the command of the operator where strangers cannot sign up, and where no website runs', () => {
    assert.match(firstAccount({ STRATA_SIGN_UP: 'closed' }), /strata-admin -- account create/);
    assert.match(firstAccount({ STRATA_ROLES: 'api,git,worker' }), /strata-admin -- account create/);
  });

  test('names the data directory, and each place of data outside of it', () => {
    const data = (env: Environment): string => lineOf('Data', env);
    assert.equal(data({}), '/srv/data');
    assert.equal(data({ STRATA_LAYERS_DIR: 'data/other' }), '/srv/data');
    assert.equal(data({ STRATA_LAYERS_DIR: 'layers' }), '/srv/data, /srv/layers');
    const keys = { STRATA_S3_ACCESS_KEY_ID: 'AKIA1', STRATA_S3_SECRET_ACCESS_KEY: 'hunter2' };
    const bucket = { STRATA_STORAGE: 's3', STRATA_S3_BUCKET: 'layers', ...keys };
    assert.equal(data({ ...bucket, STRATA_LAYERS_DIR: 'layers' }), '/srv/data, the bucket layers');
    const database = { STRATA_DATABASE_URL: 'postgresql://ada:hunter2@host/strata' };
    assert.equal(data(database), '/srv/data, the PostgreSQL of STRATA_DATABASE_URL');
  });
});
