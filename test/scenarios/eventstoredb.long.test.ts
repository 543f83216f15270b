/**
 * The service with its event log in EventStoreDB: push, clone, REST, rebuild, two servers, an outage. The log is the
 * protocol server, a stand-in; `STRATA_TEST_LOG=eventstoredb npm test -- scenarios` runs the other scenarios on it.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { READ_LEASE_SPAN_MS } from '../../apps/server/settings.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { assertEqualToGit, assertRebuildable } from '../support/equal-to-git.ts';
import { openServer } from '../support/eventstoredb/open-log.ts';
import { eventually } from '../support/processes.ts';
import { createSampleRepository } from '../support/sample-repository.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('With the event log in EventStoreDB', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let first: Strata;
  let second: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending, 'eventstoredb');
    [first, second] = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
    ada = await createAccount(first, 'ada');
  });

  test('a repository pushed and cloned back is identical, and REST shows what git shows', async (context) => {
    const folder = await tempDir(context);
    const source = createSampleRepository(folder);
    const url = await createRepository(first, ada, 'sample');
    await git(source, ['push', '--quiet', url, 'refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*']);
    // Read from the other server, which has not served this repository yet.
    await assertEqualToGit(second, ada, 'sample', source, folder);
    await assertRebuildable(first);
    await admin(first, ['projections', 'rebuild']);
    await assertEqualToGit(first, ada, 'sample', source, await tempDir(context));
  });

  test('a push, and a revoked token, take effect at the next request to the other server', async (context) => {
    const url = await createRepository(first, ada, 'seen');
    const work = await newWorkTree(context);
    for (let round = 0; round < 5; round += 1) {
      const commit = await commitFile(work, 'file', `round ${round}\n`);
      await git(work, ['push', '--quiet', url, 'main']);
      const answer = await api(second, ada.token, 'GET', '/v1/repos/ada/seen/branches');
      const { branches } = answer.body as { branches: { commit: { hexsha: string } }[] };
      assert.equal(branches[0]?.commit.hexsha, commit);
      const token = await createToken(first, 'ada');
      const there = gitUrl(second, { username: 'ada', token: token.token }, 'seen');
      assert.match(await git(work, ['ls-remote', there, 'main']), new RegExp(commit));
      assert.equal((await api(first, ada.token, 'DELETE', `/v1/access-tokens/${token.id}`)).status, 204);
      assert.match((await tryGit(work, ['ls-remote', there])).stderr, /Authentication failed/);
    }
  });

  test('all events are in EventStoreDB', async () => {
    const events = await shared.log.since();
    assert.ok(events.some(({ type }) => type === 'RefsUpdated'));
    const log = (await admin(first, ['log', 'verify'])) as { readonly events: number; readonly faults: unknown[] };
    assert.ok(log.events >= events.length);
    assert.deepEqual(log.faults, []);
  });

  test('a server killed and restarted serves the same refs', async (context) => {
    const url = await createRepository(first, ada, 'kept');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    await second.kill();
    const again = await second.restart();
    assert.equal(await git(work, ['ls-remote', gitUrl(again, ada, 'kept')]), await git(work, ['ls-remote', url]));
  });

  test('an outage of the log refuses requests with 503 and loses nothing', {
    timeout: 120_000,
  }, async (context) => {
    const server = await openServer(context);
    const env = {
      ...shared.env,
      STRATA_DATABASE_URL: '',
      STRATA_DATABASE_OWNER_URL: '',
      STRATA_EVENTSTORE_URL: server.url,
    };
    const strata = await startStrata(context, { env });
    const eve = await createAccount(strata, 'eve');
    const url = await createRepository(strata, eve, 'kept');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    await server.restart();
    const commit = await commitFile(work, 'file', 'after a restart\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const listed = git(work, ['ls-remote', url, 'main']);
    await server.stop();
    const waiting = api(strata, eve.token, 'GET', '/v1/repos/eve/kept/commits');
    await sleep(1_000);
    await server.start();
    assert.deepEqual(
      [(await waiting).status, await listed],
      [200, `${commit}\trefs/heads/main\n`],
      'requests wait during a short outage',
    );

    await server.stop();
    // Until then the server answers from memory: no append is acknowledged that it has not heard of.
    await sleep(READ_LEASE_SPAN_MS);
    const later = await commitFile(work, 'file', 'in an outage\n');
    const [read, created, pushed, cloned] = await Promise.all([
      api(strata, eve.token, 'GET', '/v1/repos/eve/kept/commits'),
      api(strata, eve.token, 'POST', '/v1/repositories', { name: 'other' }),
      tryGit(work, ['push', url, 'main']),
      tryGit(work, ['clone', url, 'copy']),
    ]);
    for (const answer of [read, created]) {
      // A request that first waited for others to finish reading the log gets the second message.
      const reasons: Record<string, RegExp> = {
        5: /cannot reach its storage, try again/,
        1: /is catching up, try again/,
      };
      assert.equal(answer.status, 503);
      assert.match(answer.text, reasons[answer.headers.get('retry-after') ?? ''] ?? /no Retry-After/);
    }
    for (const { stderr } of [pushed, cloned]) {
      assert.match(stderr, /remote: The service (cannot reach its storage|is catching up), try again.*503/s);
    }
    const ready = await fetch(`${strata.url}/readyz`);
    const { parts } = (await ready.json()) as { parts: { readonly log: unknown } };
    assert.deepEqual([ready.status, parts.log], [503, 'no answer']);
    for (const target of ['/healthz', '/metrics', '/v1/openapi.json']) {
      assert.equal((await fetch(strata.url + target)).status, 200, target);
    }
    await server.start();
    await eventually('it is ready', async () => (await fetch(`${strata.url}/readyz`)).status === 200);
    assert.equal((await api(strata, eve.token, 'POST', '/v1/repositories', { name: 'other' })).status, 201);
    await git(work, ['push', '--quiet', url, 'main']);

    server.faults.stalled = true;
    await sleep(READ_LEASE_SPAN_MS);
    assert.match((await tryGit(work, ['ls-remote', url])).stderr, /503/, 'a log that accepts calls and answers none');
    server.faults.stalled = false;
    await eventually('it answers again', async () => (await tryGit(work, ['ls-remote', url])).code === 0);
    assert.match(await git(work, ['ls-remote', url, 'main']), new RegExp(later));
    await commitFile(work, 'file', 'after an outage\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const answer = await api(strata, eve.token, 'GET', '/v1/repos/eve/kept/commits');
    assert.equal((answer.body as { commits: unknown[] }).commits.length, 4);

    server.faults.append = () => 'lose-answer';
    await commitFile(work, 'file', 'without an answer\n');
    const unanswered = await tryGit(work, ['push', url, 'main']);
    assert.match(unanswered.stderr, /remote: the push may have been committed/);
    server.faults.append = null;
    await git(work, ['push', '--quiet', url, 'main']);
    assert.equal(strata.process.exitCode, null, 'the server runs');
  });

  test('an address where nothing answers ends a command with the name of the setting', async (context) => {
    const folder = await tempDir(context);
    const env = { ...shared.env, STRATA_DATA_DIR: folder, STRATA_EVENTSTORE_URL: 'esdb://127.0.0.1:9?tls=false' };
    await assert.rejects(
      admin({ env }, ['log', 'verify']),
      /STRATA_EVENTSTORE_URL cannot be used: EventStoreDB cannot be reached/,
    );
    await assert.rejects(
      startStrata(context, { env: { STRATA_EVENT_STORE: 'eventstoredb' } }),
      /STRATA_EVENTSTORE_URL is not set/,
    );
  });
});
