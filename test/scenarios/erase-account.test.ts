/** Erases an account while two servers run, also by a command that dies halfway. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The address of a repository on this node. */
function onNode(node: Strata, url: string): string {
  const here = new URL(url);
  here.port = new URL(node.url).port;
  return here.href;
}

interface LogReport {
  readonly faults: readonly string[];
}

describe('Erasing an account', () => {
  const ending = suiteEnding();
  let one: Strata;
  let two: Strata;
  let layersDir: string;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    layersDir = shared.layersDir;
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
      const here = new URL(onNode(node, url));
      const listed = await fetch(`${node.url}${here.pathname}/info/refs?service=git-upload-pack`, {
        headers: { Authorization: `Basic ${btoa(`${account.username}:${account.token}`)}` },
      });
      assert.equal(listed.status, 401, await listed.text());
    }
  }

  test('prints what it would do, and does nothing, without --yes', async () => {
    const ada = await createAccount(one, 'ada');
    await createRepository(one, ada, 'project');
    await assert.rejects(erase(one, 'ada'), /exited 1:[^]*ada, permanently[^]*repositories \(1\)[^]*Nothing was done/);
    assert.equal((await api(two, ada.token, 'GET', '/v1/repos/ada/project')).status, 200);
    await assert.rejects(erase(one, 'nobody', '--yes'), /There is no account/);
  });

  test('removes its tokens and repositories on every node immediately, and the log still verifies', async (context) => {
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

  test('leaves nothing behind of clones under way, each of which ends whole or with an error', {
    timeout: 240_000,
  }, async (context) => {
    const dora = await createAccount(one, 'dora');
    const url = await createRepository(one, dora, 'project');
    const { body } = await api(one, dora.token, 'GET', '/v1/repos/dora/project');
    const { id } = body as { readonly id: string };
    const work = await newWorkTree(context);
    await commitFile(work, 'large', randomBytes(3_000_000).toString('hex'));
    await git(work, ['push', '--quiet', url, 'main']);
    const folder = await tempDir(context);
    let made = 0;
    const clone = async (node: Strata): Promise<number | null> => {
      made += 1;
      const into = path.join(folder, `clone-${made}`);
      const { code } = await tryGit(folder, ['clone', '--quiet', onNode(node, url), into]);
      if (code === 0) await git(into, ['fsck', '--full']);
      return code;
    };
    const erasing = { isOver: false };
    const cloning = Promise.all(
      [one, two].map(async (node) => {
        const codes: (number | null)[] = [];
        while (!erasing.isOver) codes.push(await clone(node));
        return [...codes, await clone(node)];
      }),
    );
    cloning.catch(() => undefined);
    try {
      await erase(one, 'dora', '--yes');
    } finally {
      erasing.isOver = true;
    }
    for (const codes of await cloning) {
      assert.equal(codes[0], 0, 'the first was before the erasure');
      assert.notEqual(codes.at(-1), 0, 'the last came after it');
    }
    const held = async (): Promise<readonly string[]> => {
      const folders = [layersDir, ...[one, two].map(({ dataDir }) => path.join(dataDir, 'cache'))];
      return (await Promise.all(folders.map(filesBelow))).flat().filter((file) => file.includes(id));
    };
    for (const deadline = Date.now() + 200_000; (await held()).length > 0; await sleep(200)) {
      assert.ok(Date.now() < deadline, (await held()).join(', '));
    }
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
