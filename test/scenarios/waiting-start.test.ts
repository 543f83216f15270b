/** Servers that start while a part they need is away: they say so, and go on when it is back. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { cleanUp } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/optional-suites.ts';
import { testDatabase } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { admin, createAccount, createRepository, git, newWorkTree, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startS3Server } from '../support/versitygw.ts';

const SPAN_MS = 60_000;

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfter: string | null;
}

/** Asks until the address answers. */
async function answerOf(url: string): Promise<Answer> {
  for (const since = Date.now(); ; await sleep(100)) {
    try {
      const response = await fetch(url);
      return { status: response.status, body: await response.json(), retryAfter: response.headers.get('retry-after') };
    } catch (error) {
      if (Date.now() - since > SPAN_MS) throw error;
    }
  }
}

/** Returns a database, and the address at which a proxy may come to it: nothing listens there yet. */
async function awayDatabase(context: TestContext) {
  const { connectionString, close } = await testDatabase();
  cleanUp(context, close);
  const port = await freePort();
  const url = new URL(connectionString);
  url.host = `127.0.0.1:${port}`;
  url.search = '';
  const bringBack = async (): Promise<void> => {
    const proxy = await startPostgresProxy(connectionString, port);
    cleanUp(context, () => proxy.close());
  };
  return { connectionString, url: url.href, bringBack };
}

describe('A server that starts while a part is away', () => {
  test('waits for PostgreSQL: it lives, says what it waits for, and serves when it is back', async (context) => {
    const { url, bringBack } = await awayDatabase(context);
    const port = await freePort();
    const env = { STRATA_PORT: String(port), STRATA_DATABASE_URL: url };
    const starting = startStrata(context, { env });
    const at = `http://localhost:${port}`;
    assert.deepEqual((await answerOf(`${at}/healthz`)).body, { status: 'ok' });
    const roles = ['api', 'git', 'website', 'worker'];
    const ready = await answerOf(`${at}/readyz`);
    assert.deepEqual(
      [ready.status, ready.body],
      [503, { status: 'unavailable', roles, parts: { postgres: 'unavailable' } }],
    );
    const other = await answerOf(`${at}/v1/repositories`);
    assert.deepEqual([other.status, other.retryAfter], [503, '10']);
    await bringBack();
    const strata = { ...(await starting), url: at };
    assert.equal((await answerOf(`${at}/readyz`)).status, 200);
    const ada = await createAccount(strata, 'ada');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'engine'), 'main']);
    assert.equal(strata.log().split('The start waits').length, 2, 'it says so once');
    // Before the proxy is closed.
    assert.equal(await strata.stop(), 0);
  });

  test('waits for the bucket of the layers', needs('versitygw'), async (context) => {
    const port = await freePort();
    const s3 = await startS3Server(context);
    await s3.kill();
    const { connectionString } = await awayDatabase(context);
    const env = {
      ...{ STRATA_PORT: String(port), STRATA_DATABASE_URL: connectionString, STRATA_STORAGE: 's3' },
      ...{ STRATA_S3_ENDPOINT: s3.url, STRATA_S3_BUCKET: s3.bucket, STRATA_S3_REGION: s3.region },
      ...{ STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId, STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey },
    };
    const starting = startStrata(context, { env });
    const ready = await answerOf(`http://localhost:${port}/readyz`);
    assert.deepEqual([ready.status, (ready.body as { parts: object }).parts], [503, { layers: 'unavailable' }]);
    await s3.start();
    const strata = await starting;
    assert.match(strata.log(), /The start waits: Strata cannot use the bucket layers at [^ ]+: see STRATA_S3_ENDPOINT/);
    assert.doesNotMatch(strata.log(), /secret-of-the-test-server/);
    assert.equal((await answerOf(`http://localhost:${port}/readyz`)).status, 200);
    assert.equal(await strata.stop(), 0);
  });

  test('ends if it is refused, and a command does not wait', async (context) => {
    const { connectionString, url } = await awayDatabase(context);
    const refused = new URL(connectionString);
    refused.pathname = '/no-such-database';
    await assert.rejects(
      startStrata(context, { env: { STRATA_DATABASE_URL: refused.href } }),
      /ended before it was ready/,
    );
    const env = { PATH: process.env['PATH'] ?? '', STRATA_DATA_DIR: await tempDir(context), STRATA_DATABASE_URL: url };
    await assert.rejects(admin({ env }, ['log', 'verify']), /STRATA_DATABASE_URL cannot be reached/);
  });
});
