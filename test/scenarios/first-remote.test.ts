/**
 * The first commands of somebody who comes from another service: credentials and addresses as they know them, and words
 * that say what to do where something is not as they know it.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as isomorphic from 'isomorphic-git';
import http from 'isomorphic-git/http/node';
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
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

async function ask(url: string, headers: Readonly<Record<string, string>>) {
  const answer = await fetch(url, { headers });
  return { status: answer.status, headers: answer.headers, url: answer.url, text: await answer.text() };
}

describe('Whoever comes from another service', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
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

  test('may give git the address of the page, which is served in place', async (context) => {
    const clones = await tempDir(context);
    for (const [index, place] of ['/ada/feat', '/ada/feat/', '/ada/feat.git', '/Ada/FEAT.git'].entries()) {
      const url = remote(`ada:${ada.token}`, place);
      const cloned = await tryGit(clones, ['-c', 'http.followRedirects=false', 'clone', url, `copy-${index}`]);
      assert.equal(cloned.code, 0, cloned.stderr);
      assert.doesNotMatch(cloned.stderr, /redirect/);
      const copy = path.join(clones, `copy-${index}`);
      await git(copy, ['push', '--quiet', 'origin', `HEAD:refs/heads/from-${index}`]);
      await git(copy, ['fetch', '--quiet']);
    }
  });

  test('may give it to isomorphic-git, which asks below the address that it was given', async (context) => {
    const dir = await tempDir(context);
    const asked = { fs, http, dir, onAuth: () => ({ username: 'ada', password: ada.token }) };
    await isomorphic.clone({ ...asked, url: `${strata.url}/ada/feat` });
    assert.equal(await git(dir, ['status', '--porcelain']), '');
    const pushed = await isomorphic.push({ ...asked, ref: 'main', remoteRef: 'refs/heads/from-isomorphic' });
    assert.equal(pushed.ok, true);
    assert.match(await git(work, ['ls-remote', remote(`ada:${ada.token}`, '/r/ada/feat.git')]), /from-isomorphic/);
  });

  test('finds the same door at both addresses of a repository', async () => {
    const basic = (token: string): string => `Basic ${Buffer.from(`ada:${token}`).toString('base64')}`;
    const eve = await createAccount(strata, 'eve');
    const { cookies } = await signIn(strata, ada);
    const cookie = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const page = await ask(`${strata.url}/ada/feat`, cookie);
    assert.equal(page.url, `${strata.url}/ada/feat`, 'the page knows the cookie');
    for (const endpoint of ['info/refs?service=git-receive-pack', 'info/refs', 'info/lfs/locks', 'git-upload-pack']) {
      for (const headers of [
        {},
        cookie,
        { authorization: basic(ada.token) },
        { authorization: basic(eve.token) },
        { authorization: basic('x') },
      ]) {
        for (const name of ['feat', 'nothing']) {
          const of = async (place: string) => {
            const { status, headers: got, text } = await ask(`${strata.url}${place}/${endpoint}`, headers);
            return { status, text, challenge: got.get('www-authenticate'), cache: got.get('cache-control') };
          };
          const there = await of(`/r/ada/${name}.git`);
          assert.deepEqual(await of(`/ada/${name}`), there);
          assert.deepEqual(await of(`/ada/${name}.git`), there);
          if (!('authorization' in headers)) assert.equal(there.status, 401);
        }
      }
    }
    assert.match((await ask(`${strata.url}/ada/feat/tree/main/info/refs`, {})).url, /\/sign-in\?next=/);
  });

  test('reaches the page by the clone address in a browser, without a password prompt', async () => {
    for (const [address, page] of [
      ['/r/ada/feat.git', '/ada/feat'],
      ['/r/ada/feat.git/', '/ada/feat'],
      ['/r/ada/feat', '/ada/feat'],
      ['/r/Ada/FEAT.GIT?from=mail', '/Ada/FEAT'],
      ['/r/ada/nothing.git', '/ada/nothing'],
      ['/r/ada/feat@2026-11-03T14:02:00%2B02:00.git', '/ada/feat?at=20261103T120200Z'],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await fetch(strata.url + address, { method, redirect: 'manual' });
        assert.deepEqual([answer.status, answer.headers.get('location')], [303, page], `${method} ${address}`);
        assert.match(answer.headers.get('cache-control') ?? '', /no-cache/);
      }
    }
    for (const address of [
      '/r/ada/feat.git/config',
      '/r/ada/..',
      '/r/ada/x.lock',
      '/r//ada/feat.git',
      '/r/ada/feat@x.git',
    ]) {
      const { status, headers } = await ask(strata.url + address, {});
      assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Basic realm="Strata"'], address);
    }
    const posted = await fetch(`${strata.url}/r/ada/feat.git`, { method: 'POST', body: 'x', redirect: 'manual' });
    assert.equal(posted.status, 401);
  });

  test('is told that LFS is not offered, in the form that its client shows', async () => {
    const authorization = `Basic ${Buffer.from(`ada:${ada.token}`).toString('base64')}`;
    const lfs = (place: string, headers: Readonly<Record<string, string>>) =>
      fetch(`${strata.url}${place}/info/lfs/objects/batch`, { method: 'POST', headers, body: '{}' });
    for (const owner of ['/r/ada', '/ada']) {
      const answer = await lfs(`${owner}/feat.git`, { authorization, 'content-type': 'application/vnd.git-lfs+json' });
      assert.equal(answer.status, 501);
      assert.match(answer.headers.get('content-type') ?? '', /application\/vnd\.git-lfs\+json/);
      const { message } = (await answer.json()) as { readonly message: string };
      assert.match(message, /LFS is not offered here yet/);
      assert.equal((await lfs(`${owner}/feat.git`, {})).status, 401);
      assert.equal((await lfs(`${owner}/nothing.git`, { authorization })).status, 404);
    }
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
