/**
 * A service whose bucket for layers lacks what some pushes need: a new service does not begin with it, and one that has
 * layers there reads them, and takes the pushes that need nothing of it.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { needs } from '../support/optional-suites.ts';
import { eventually } from '../support/processes.ts';
import { type S3Proxy, startS3Proxy } from '../support/s3-proxy.ts';
import {
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startS3Server } from '../support/versitygw.ts';

/** A database, and a bucket behind a proxy that plays its provider. */
async function bucketOf(context: TestContext) {
  const s3 = await startS3Server(context);
  const [proxy, shared] = await Promise.all([startS3Proxy(context, s3.port), sharedParts(context)]);
  const env = {
    ...shared.env,
    ...{ STRATA_STORAGE: 's3', STRATA_S3_ENDPOINT: proxy.url, STRATA_S3_REGION: s3.region },
    ...{ STRATA_S3_BUCKET: s3.bucket, STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId },
    STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };
  return { proxy, env };
}

/** Work that comes every ten minutes comes every two seconds. */
const QUICK = {
  NODE_OPTIONS: `--import ${path.resolve(import.meta.dirname, '../support/quick-intervals.ts')}`,
  QUICK_INTERVALS_MS: '2000',
};

const NO_PARTS: S3Proxy['fault'] = ({ url }) =>
  url.includes('?uploads') ? { kind: 'answer', status: 501, code: 'NotImplemented' } : null;

async function readiness({ url }: Strata): Promise<readonly unknown[]> {
  const response = await fetch(`${url}/readyz`);
  const { parts } = (await response.json()) as { readonly parts: { readonly layers?: string } };
  return [response.status, parts.layers];
}

describe('A service whose bucket takes no uploads in parts', needs('versitygw'), () => {
  test('does not begin with it, and says why as a verification does', async (context) => {
    const { proxy, env } = await bucketOf(context);
    proxy.fault = NO_PARTS;
    await assert.rejects(startStrata(context, { env }), (error: Error) => {
      assert.match(error.message, /Strata cannot use the bucket layers at [^ ]+: see STRATA_S3_ENDPOINT\n/);
      assert.match(
        error.message,
        /\n {2}Step multipart: The bucket answered CreateMultipartUpload with 501 \(NotImplemented\)/,
      );
      assert.doesNotMatch(error.message, /secret-of-the|AKIA|Strata is ready/);
      return true;
    });
  });

  test('goes on if it has layers there: it is ready and degraded, and refuses large pushes by name', async (context) => {
    const { proxy, env } = await bucketOf(context);
    let strata = await startStrata(context, { env: { ...env, ...QUICK } });
    assert.deepEqual(await readiness(strata), [200, 'ok']);
    const ada = await createAccount(strata, 'ada');
    const url = await createRepository(strata, ada, 'engine');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);

    proxy.fault = NO_PARTS;
    strata = await strata.restart();
    assert.deepEqual(await readiness(strata), [200, 'degraded']);
    assert.match(strata.log(), /"level":"error".*The bucket of the layers lacks what pushes need/);
    const tip = await commitFile(work, 'small', 'more\n');
    await git(work, ['push', '--quiet', url, 'main']);
    await commitFile(work, 'large', randomBytes(9 * 1024 * 1024).toString('base64'));
    const refused = await tryGit(work, ['push', '--quiet', url, 'main']);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /takes no uploads in parts and so no large push: its owner must act/);
    const folder = await tempDir(context);
    await git(folder, ['clone', '--quiet', '--bare', url, 'copy.git']);
    assert.equal((await git(path.join(folder, 'copy.git'), ['rev-parse', 'main'])).trim(), tip);
    assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/engine')).status, 200);

    proxy.fault = () => null;
    await eventually('the bucket is tried again', () => strata.log().includes('has all that pushes need again'));
    await git(work, ['push', '--quiet', url, 'main']);
    assert.deepEqual(await readiness(strata), [200, 'ok'], 'without another start');
  });
});

describe('A service whose bucket keeps no conditions', needs('versitygw'), () => {
  test('warns of it at the start, and serves', async (context) => {
    const { proxy, env } = await bucketOf(context);
    proxy.fault = ({ headers }) =>
      headers['if-none-match'] === undefined ? null : { kind: 'answer', status: 501, code: 'NotImplemented' };
    const strata = await startStrata(context, { env });
    assert.match(strata.log(), /"level":"warn".*does not keep the condition that a new key is free/);
    assert.deepEqual(await readiness(strata), [200, 'ok']);
    const ada = await createAccount(strata, 'ada');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'engine'), 'main']);
  });
});
