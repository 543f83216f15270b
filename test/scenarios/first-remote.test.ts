/**
 * The first commands of somebody who comes from another service: credentials and addresses as they know them, and words
 * that say what to do where something is not as they know it.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('Whoever comes from another service', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;

  beforeAll(async () => {
    strata = await startStrata(ending);
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'feat'), 'main']);
  });

  const remote = (userinfo: string, place: string): string => strata.url.replace('://', `://${userinfo}@`) + place;

  test('may send the token as the username with any password or none, as the password, and as Bearer', async () => {
    const place = '/r/ada/feat.git';
    for (const userinfo of [
      `${ada.token}:`,
      `${ada.token}:x-oauth-basic`,
      `${ada.token}:${ada.username}`,
      `x-access-token:${ada.token}`,
      `strata_nobody:${ada.token}`,
    ]) {
      assert.match(await git(work, ['ls-remote', remote(userinfo, place)]), /refs\/heads\/main/, userinfo);
    }
    const header = `http.extraHeader=Authorization: Bearer ${ada.token}`;
    await git(work, ['-c', header, 'push', '--quiet', strata.url + place, 'main:by-bearer']);
    for (const userinfo of [`${ada.token.slice(0, -1)}:`, `ada:${ada.token.slice(0, -1)}`, 'ada:x', `x:`]) {
      const refused = await tryGit(work, ['ls-remote', remote(userinfo, place)]);
      assert.notEqual(refused.code, 0, userinfo);
      assert.match(refused.stderr, /Authentication failed/);
    }
  });

  test('may give git the address of the page: it says where the repository lies, and goes there', async (context) => {
    const clones = await tempDir(context);
    for (const [index, place] of ['/ada/feat', '/ada/feat/', '/ada/feat.git'].entries()) {
      const url = remote(`ada:${ada.token}`, place);
      const cloned = await tryGit(clones, ['clone', url, `copy-${index}`]);
      assert.equal(cloned.code, 0, cloned.stderr);
      assert.match(cloned.stderr, /warning: redirecting to http:\/\/localhost:\d+\/r\/ada\/feat\.git\/?\n/);
      const copy = path.join(clones, `copy-${index}`);
      await git(copy, ['push', '--quiet', 'origin', `HEAD:refs/heads/from-${index}`]);
      await git(copy, ['fetch', '--quiet']);
    }
    const unfollowed = await fetch(`${strata.url}/ada/nothing/info/refs?service=git-upload-pack`, {
      redirect: 'manual',
    });
    assert.equal(unfollowed.status, 301, 'the same for what does not exist');
    assert.match(await unfollowed.text(), /the repository lies at \/r\/ada\/nothing\.git/);
    const page = await fetch(`${strata.url}/ada/feat/info/refs?service=http://elsewhere`, { redirect: 'manual' });
    assert.notEqual(page.status, 301);
  });

  test('is told that LFS is not offered, in the form that its client shows', async () => {
    const authorization = `Basic ${Buffer.from(`ada:${ada.token}`).toString('base64')}`;
    const lfs = (place: string, headers: Readonly<Record<string, string>>) =>
      fetch(`${strata.url}/r/ada/${place}/info/lfs/objects/batch`, { method: 'POST', headers, body: '{}' });
    const answer = await lfs('feat.git', { authorization, 'content-type': 'application/vnd.git-lfs+json' });
    assert.equal(answer.status, 501);
    assert.match(answer.headers.get('content-type') ?? '', /application\/vnd\.git-lfs\+json/);
    const { message } = (await answer.json()) as { readonly message: string };
    assert.match(message, /LFS is not offered here yet/);
    assert.equal((await lfs('feat.git', {})).status, 401);
    assert.equal((await lfs('nothing.git', { authorization })).status, 404);
  });

  test('is told which branches there are when the default branch was deleted', async () => {
    const url = await createRepository(strata, ada, 'moved');
    await git(work, ['push', '--quiet', url, 'main', 'main:next', 'main:old']);
    await git(work, ['push', '--quiet', url, ':main']);
    for (const what of ['commits', 'contents']) {
      const answer = await api(strata, ada.token, 'GET', `/v1/repos/ada/moved/${what}`);
      assert.equal(answer.status, 404);
      assert.deepEqual(answer.body, { detail: 'The default branch main does not exist. Branches: next, old' });
    }
  });
});
