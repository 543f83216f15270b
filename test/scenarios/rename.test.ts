/** Real git at the old address of a repository that was renamed. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { signIn } from '../support/site-browser.ts';
import {
  type Account,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryAdmin,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('A repository that was renamed', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;
  let beforeRename: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'tools'), 'main']);
    beforeRename = new Date().toISOString();
    await rename('tools', 'kit');
  });

  async function rename(from: string, name: string): Promise<void> {
    const answer = await api(strata, ada.token, 'PATCH', `/v1/repos/ada/${from}`, { name });
    assert.equal(answer.status, 200);
  }

  const remote = (place: string, token = ada.token): string => strata.url.replace('://', `://ada:${token}@`) + place;
  const text = async (url: string, init: RequestInit = {}) => {
    const answer = await fetch(url, { redirect: 'manual', ...init });
    return { status: answer.status, location: answer.headers.get('location'), text: await answer.text() };
  };
  const basic = (token: string) => ({ authorization: `Basic ${Buffer.from(`ada:${token}`).toString('base64')}` });

  test('is cloned, fetched and pushed to at its old address, with credentials in the address alone', async (context) => {
    const clones = await tempDir(context);
    for (const [index, place] of ['/r/ada/tools.git', '/ADA/Tools'].entries()) {
      const copy = `copy-${index}`;
      const cloned = await tryGit(clones, ['clone', remote(place), copy]);
      assert.equal(cloned.code, 0, cloned.stderr);
      assert.match(cloned.stderr, /redirecting to .*\/r\/ada\/kit\.git/);
      await git(`${clones}/${copy}`, ['push', '--quiet', 'origin', `HEAD:refs/heads/from-${index}`]);
      await git(`${clones}/${copy}`, ['fetch', '--quiet', 'origin']);
    }
    const refs = await git(work, ['ls-remote', remote('/r/ada/kit.git')]);
    assert.match(refs, /from-0[^]*from-1/);
  });

  test('leads git on after its 401 and at info/refs alone, and answers what git asks next at the old address', async () => {
    const refs = `${strata.url}/r/ada/tools.git/info/refs?service=git-upload-pack`;
    assert.equal((await text(refs)).status, 401);
    const moved = await text(refs, { headers: basic(ada.token) });
    const location = '/r/ada/kit.git/info/refs?service=git-upload-pack';
    assert.deepEqual([moved.status, moved.location, moved.text], [301, location, 'The repository is ada/kit now\n']);
    const pushes = await text(refs.replace('upload', 'receive'), { headers: basic(ada.token) });
    assert.deepEqual([pushes.status, pushes.location], [301, location.replace('upload', 'receive')]);
    const body = '0014command=ls-refs\n0000';
    const headers = { ...basic(ada.token), 'content-type': 'application/x-git-upload-pack-request' };
    const listed = await text(`${strata.url}/r/ada/tools.git/git-upload-pack`, {
      ...{ method: 'POST', body, headers: { ...headers, 'git-protocol': 'version=2' } },
    });
    assert.equal(listed.status, 200);
    assert.match(listed.text, /refs\/heads\/main/);
  });

  test('leads no caller on who may not see it, and is told as a name that nobody has', async () => {
    const bob = await createAccount(strata, 'bob');
    const at = (name: string) =>
      text(`${strata.url}/r/ada/${name}.git/info/refs?service=git-upload-pack`, { headers: basic(bob.token) });
    const [old, nobody] = [await at('tools'), await at('nothing')];
    assert.deepEqual(old, nobody);
    assert.equal(old.status, 404);
  });

  test('is read as of a moment under any of its names', async () => {
    const now = encodeURIComponent(new Date().toISOString().replace(/\.\d+/, ''));
    for (const name of ['tools', 'kit']) {
      assert.match(await git(work, ['ls-remote', remote(`/r/ada/${name}@${now}.git`)]), /refs\/heads\/main/, name);
    }
  });

  test('is verified by an operator who types any of its names', async () => {
    for (const name of ['ada/tools', 'ADA/Kit']) {
      const verified = await tryAdmin(strata, ['storage', 'verify', '--repository', name]);
      assert.equal(verified.code, 0, verified.stderr);
      assert.match(verified.stdout, /^1 repositories, /m);
    }
  });

  test('has its pages at the new address, to which the old one leads with its query', async () => {
    const browser = await signIn(strata, ada);
    for (const [from, to] of [
      ['/ada/tools', '/ada/kit'],
      ['/ada/TOOLS/commits/main?page=0', '/ada/kit/commits/main?page=0'],
      ['/ada/tools/settings', '/ada/kit/settings'],
    ] as const) {
      const page = await browser.get(from);
      assert.deepEqual([page.status, page.location], [301, to]);
      assert.equal(page.headers['cache-control'], 'no-store');
      assert.equal((await browser.follow(page)).status, 200);
    }
  });

  test('takes a form that was open while it was renamed', async () => {
    const browser = await signIn(strata, ada);
    const fields = { description: 'Sent late', default_branch: 'main' };
    const saved = await browser.submit('/ada/tools/settings', fields, '/ada/kit/settings');
    assert.deepEqual([saved.status, saved.location], [303, '/ada/kit/settings']);
    const read = await api(strata, ada.token, 'GET', '/v1/repos/ada/kit');
    assert.match(read.text, /"description":"Sent late"/);
  });

  test('is reached by git at its old address until another repository takes the name', async () => {
    await createRepository(strata, ada, 'tools');
    const listed = await git(work, ['ls-remote', remote('/r/ada/tools.git')]);
    assert.equal(listed, '');
  });

  test('is led to from its own pages of earlier moments, though another repository has its old name', async () => {
    const browser = await signIn(strata, ada);
    const page = await browser.get(`/ada/kit?at=${encodeURIComponent(beforeRename)}`);
    assert.equal(page.status, 200);
    assert.match(page.html, /href="\/ada\/kit\/commits\?at/);
    assert.doesNotMatch(page.html, /\/ada\/tools/);
  });
});
