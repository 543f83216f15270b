/** Erases an account while two servers run, also by a command that dies halfway. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  createToken,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface LogReport {
  readonly faults: readonly string[];
}

describe('Erasing an account', () => {
  const ending = suiteEnding();
  let one: Strata;
  let two: Strata;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    [one, two] = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
  });

  const erase = (strata: Pick<Strata, 'env'>, username: string, ...more: string[]) =>
    admin(strata, ['account', 'erase', '--username', username, ...more]);
  const verify = async (): Promise<readonly string[]> =>
    ((await admin(one, ['log', 'verify', '--references'])) as LogReport).faults;

  /** Checks that no node knows the token or the repository any more. */
  async function isGone(account: Account, url: string): Promise<void> {
    for (const node of [one, two]) {
      assert.equal((await api(node, account.token, 'GET', '/v1/repositories')).status, 401);
      const here = new URL(url);
      here.port = new URL(node.url).port;
      const listed = await fetch(`${node.url}${here.pathname}/info/refs?service=git-upload-pack`, {
        headers: { Authorization: `Basic ${btoa(`${account.username}:${account.token}`)}` },
      });
      assert.equal(listed.status, 401, await listed.text());
    }
  }

  test('prints what it would do, and does nothing, without --yes', async () => {
    const ada = await createAccount(one, 'ada');
    await createRepository(one, ada, 'project');
    await assert.rejects(erase(one, 'ada'), /exited 1:[^]*ada, for ever[^]*repositories \(1\)[^]*Nothing was done/);
    assert.equal((await api(two, ada.token, 'GET', '/v1/repos/ada/project')).status, 200);
    await assert.rejects(erase(one, 'nobody', '--yes'), /There is no account/);
  });

  test('removes its tokens and repositories on every node at once, and the log still verifies', async (context) => {
    const bob = await createAccount(one, 'bob');
    const url = await createRepository(one, bob, 'project');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const erased = await erase(one, 'bob', '--yes');
    assert.deepEqual(erased, { id: bob.id, username: 'bob', repositories: 1, address_released: true });
    await isGone(bob, url);
    assert.match((await tryGit(work, ['push', url, 'main:other'])).stderr, /Authentication failed|401/);
    await assert.rejects(createToken(one, 'bob'), /There is no account/);
    assert.deepEqual(await erase(one, 'bob', '--yes'), { ...(erased as object), repositories: 0 });
    assert.deepEqual(await verify(), []);
    const { projections } = (await admin(one, ['projections', 'rebuild', '--verify'])) as {
      projections: { differences: number }[];
    };
    assert.ok(projections.length > 0 && projections.every(({ differences }) => differences === 0));
  });

  test('that dies right after its event leaves no working access, is reported by log verify, and can be finished', async () => {
    const cleo = await createAccount(one, 'cleo');
    const url = await createRepository(one, cleo, 'project');
    const dying = { env: { ...one.env, STRATA_FAILPOINT: 'account-erased' } };
    await assert.rejects(erase(dying, 'cleo', '--yes'), /exited null/);
    await isGone(cleo, url);
    await assert.rejects(verify(), /exited 1/);
    await erase(two, 'cleo', '--yes');
    assert.deepEqual(await verify(), []);
  });
});
