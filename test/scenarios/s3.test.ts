/**
 * A service whose layers lie in a bucket of a real S3 server, with real git: what was acknowledged is in the bucket,
 * and a node with an empty cache serves it.
 */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { needs } from '../support/optional-suites.ts';
import {
  type Account,
  admin,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
  tryAdmin,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type S3Server, startS3Server } from '../support/versitygw.ts';

describe('A service with its layers in a bucket', needs('versitygw'), () => {
  const ending = suiteEnding();
  let s3: S3Server;
  let shared: SharedParts;
  let first: Strata;
  let second: Strata;
  let ada: Account;
  let bucketEnv: Readonly<Record<string, string>>;

  beforeAll(async () => {
    s3 = await startS3Server(ending);
    shared = await sharedParts(ending);
    bucketEnv = {
      STRATA_STORAGE: 's3',
      STRATA_S3_ENDPOINT: s3.url,
      STRATA_S3_REGION: s3.region,
      STRATA_S3_BUCKET: s3.bucket,
      STRATA_S3_PREFIX: 'git',
      STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId,
      STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    };
    [first, second] = await Promise.all([startNode(ending, shared, bucketEnv), startNode(ending, shared, bucketEnv)]);
    ada = await createAccount(first, 'ada');
  });

  async function cloneOf(url: string): Promise<string> {
    const folder = await tempDir(ending);
    await git(folder, ['clone', '--quiet', '--mirror', url, 'copy.git']);
    await git(path.join(folder, 'copy.git'), ['fsck', '--full', '--strict']);
    return (await git(path.join(folder, 'copy.git'), ['rev-parse', 'refs/heads/main'])).trim();
  }

  const layersInBucket = async (): Promise<readonly string[]> =>
    (await filesBelow(path.join(s3.folder, 'git'))).filter((file) => file.endsWith('.tar'));

  test('a push that was acknowledged survives kill -9 and the loss of the cache, on either node', async () => {
    const url = await createRepository(first, ada, 'killed');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main']);
    const tip = await commitFile(work, 'second', 'more\n');
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal((await layersInBucket()).length, 2);
    assert.equal(await cloneOf(gitUrl(second, ada, 'killed')), tip, 'the other node, which never saw the push');
    await Promise.all([first.kill(), s3.kill()]);
    await rm(path.join(first.dataDir, 'cache'), { recursive: true, force: true });
    await s3.start();
    first = await first.restart();
    assert.equal(await cloneOf(gitUrl(first, ada, 'killed')), tip);
  });

  test('while the bucket cannot be reached, a push is refused, and cached objects are served', async () => {
    const url = await createRepository(first, ada, 'away');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main']);
    const before = (await git(work, ['rev-parse', 'main'])).trim();
    await s3.kill();
    const after = await commitFile(work, 'second', 'more\n');
    const refused = await tryGit(work, ['push', '--quiet', url, 'main']);
    assert.notEqual(refused.code, 0);
    assert.match(
      refused.stderr,
      /remote: The bucket that holds this repository cannot be reached, try again: nothing was changed/,
    );
    assert.match(first.log(), /The connection to the bucket failed at PutObject \(ECONN[A-Z]+\): repositories\//);
    assert.equal(await cloneOf(url), before);
    await s3.start();
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal(await cloneOf(gitUrl(second, ada, 'away')), after);
  });

  test('storage list and verify read the bucket, and name a layer that is missing there', async () => {
    const url = await createRepository(first, ada, 'verified');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', url, 'main']);
    const listed = (await admin(first, ['storage', 'list'])) as {
      repositories: { repository: string; layers: number }[];
    };
    assert.equal(listed.repositories.find(({ repository }) => repository === 'ada/verified')?.layers, 1);
    const intact = await tryAdmin(first, ['--json', 'storage', 'verify', '--repository', 'ada/verified']);
    assert.equal(intact.code, 0, intact.stderr);
    const [newest = ''] = (await layersInBucket()).toSorted((a, b) => (path.basename(a) < path.basename(b) ? 1 : -1));
    await rm(path.join(s3.folder, 'git', newest));
    const report = await tryAdmin(first, ['--json', 'storage', 'verify', '--repository', 'ada/verified']);
    const { faults } = JSON.parse(report.stdout) as { faults: { kind: string; what: string }[] };
    assert.deepEqual(
      faults.map(({ kind, what }) => [kind, what]),
      [['missing', newest]],
    );
  });

  for (const { what, env, says } of [
    {
      what: 'a wrong secret',
      env: { STRATA_S3_SECRET_ACCESS_KEY: 'wrong-secret' },
      says: /see STRATA_S3_ACCESS_KEY_ID and STRATA_S3_SECRET_ACCESS_KEY\n.*SignatureDoesNotMatch/,
    },
    { what: 'a bucket that is not there', env: { STRATA_S3_BUCKET: 'other' }, says: /see STRATA_S3_BUCKET\n/ },
  ]) {
    test(`${what} stops the start with the setting's name, and prints no key`, async () => {
      const start = startStrata(ending, { env: { ...shared.env, ...bucketEnv, ...env } });
      await assert.rejects(start, (error: Error) => {
        assert.match(error.message, says);
        assert.doesNotMatch(error.message, /wrong-secret|secret-of-the|AKIA|    at /);
        return true;
      });
    });
  }
});
