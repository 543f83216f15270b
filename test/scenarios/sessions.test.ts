/**
 * People's sessions on a real server of two nodes: they hold on every node and over restarts, and end on all together.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { person } from '../support/person.ts';
import { api, type Strata, tryGit } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const PASSWORD = 'correct horse battery';

describe('A person on a service of two nodes', () => {
  const ending = suiteEnding();
  let one: Strata;
  let two: Strata;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    [one, two] = await Promise.all([startNode(ending, shared, {}), startNode(ending, shared, {})]);
  });

  test('signs up on one, is signed in on both and after a kill, and a new password ends the other sessions', async () => {
    const first = person();
    const signedUp = await first.submit(one, '/sign-up', {
      username: 'ada',
      email: 'ada@example.org',
      password: PASSWORD,
    });
    assert.deepEqual([signedUp.status, signedUp.location], [303, '/ada']);
    assert.match(await first.read(two, '/settings'), /<dd>ada@example.org<\/dd>/);
    const second = person();
    assert.equal((await second.submit(two, '/sign-in', { login: 'ada', password: PASSWORD })).status, 303);
    one = await one.restart();
    assert.match(await second.read(one, '/settings'), /Where you are signed in/);
    const fields = {
      current_password: PASSWORD,
      new_password: 'a longer password',
      new_password_again: 'a longer password',
    };
    assert.equal((await first.submit(two, '/settings/password', fields)).status, 303);
    assert.match(await first.read(one, '/settings'), /Your password is changed/);
    assert.match(await second.read(one, '/settings'), /<h1>Sign in<\/h1>/);
  });

  test('cannot use the password of the website for git or the API', async () => {
    const bob = { username: 'bob', email: 'bob@example.org', password: PASSWORD };
    assert.equal((await person().submit(one, '/sign-up', bob)).status, 303);
    assert.equal((await api(one, PASSWORD, 'GET', '/v1/repositories')).status, 401);
    const url = new URL(`${one.url}/r/bob/project.git`);
    url.username = 'bob';
    url.password = PASSWORD;
    assert.match((await tryGit('/', ['ls-remote', url.href])).stderr, /Authentication failed/);
  });
});
