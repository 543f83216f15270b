/** PostgreSQL stops: requests fail with a reason, no wrong answer is served, and service resumes without a restart. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { databaseOn, startTestCluster } from '../support/postgres.ts';
import {
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  startStrata,
  tryGit,
} from '../support/strata.ts';

const RESUME_SPAN_MS = 30_000;

test('without PostgreSQL every request gets 503, and when it is back the service continues where it was', async (context) => {
  const cluster = await startTestCluster();
  let { embedded } = cluster;
  cleanUp(context, () => cluster.stop());
  cleanUp(context, () => embedded.stop());
  const database = await databaseOn(cluster.connectionString);
  const strata = await startStrata(context, {
    log: 'postgres',
    env: { STRATA_DATABASE_URL: database.connectionString },
  });
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);

  await embedded.stop();
  const listed = await tryGit(work, ['ls-remote', url]);
  assert.match(listed.stderr, /503/);
  const commit = await commitFile(work, 'second', 'second\n');
  const pushed = await tryGit(work, ['push', url, 'main']);
  assert.notEqual(pushed.code, 0);
  const branches = await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches');
  assert.equal(branches.status, 503);
  assert.notEqual(branches.headers.get('retry-after'), null);
  assert.equal((await fetch(`${strata.url}/readyz`)).status, 503);
  assert.equal((await fetch(`${strata.url}/healthz`)).status, 200);

  embedded = await startEmbeddedPostgres({ processFacts, dataDir: cluster.dataDir, log: keepLog() });
  for (const deadline = Date.now() + RESUME_SPAN_MS; (await fetch(`${strata.url}/readyz`)).status !== 200; ) {
    assert.ok(Date.now() < deadline, 'the service did not resume');
    await sleep(100);
  }
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await git(work, ['ls-remote', url, 'main']), `${commit}\trefs/heads/main\n`);
  const after = await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches');
  assert.equal(after.status, 200, after.text);
});
