/**
 * Nodes that each run a part of the work: which requests they serve, which they refuse, and how they report their
 * roles.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { until } from '../support/read-models.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  logKind,
  newWorkTree,
  PARTS_OK,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

describe('On nodes of different roles', () => {
  const ending = suiteEnding();
  let serving: Strata;
  let gitOnly: Strata;
  let worker: Strata;
  let ada: Account;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    [serving, gitOnly, worker] = await Promise.all([
      startNode(ending, shared, { STRATA_ROLES: 'api,website' }),
      startNode(ending, shared, { STRATA_ROLES: 'git' }),
      startNode(ending, shared, { STRATA_ROLES: 'worker' }),
    ]);
    ada = await createAccount(serving, 'ada');
  });

  test('a push to one is listed by another, through the read models of a third', async (context) => {
    await createRepository(serving, ada, 'project');
    const work = await newWorkTree(context);
    const commit = await commitFile(work, 'file', 'content\n');
    await git(work, ['push', '--quiet', gitUrl(gitOnly, ada, 'project'), 'main']);
    const answer = await api(serving, ada.token, 'GET', '/v1/repos/ada/project/branches');
    const { branches } = answer.body as { branches: { commit: { hexsha: string } }[] };
    assert.equal(branches[0]?.commit.hexsha, commit);
    assert.deepEqual(await appliedEvents(serving), []);
    assert.deepEqual(await appliedEvents(gitOnly), []);
    assert.notDeepEqual(await appliedEvents(worker), []);
  });

  test('a node refuses requests of a role it does not run with 421, never as an unknown repository', async (context) => {
    for (const strata of [gitOnly, worker]) {
      const answer = await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches');
      assert.equal(answer.status, 421);
      const { detail } = answer.body as { detail: string };
      assert.equal(detail, 'This node does not run the role api: the request belongs to another one');
      assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
    }
    for (const strata of [gitOnly, worker]) {
      for (const path of ['/', '/sign-in', '/v1x', '/ada/project']) {
        const answer = await fetch(strata.url + path);
        assert.equal(answer.status, 421, path);
        const { detail } = (await answer.json()) as { detail: string };
        assert.equal(detail, 'This node does not run the role website: the request belongs to another one');
      }
    }
    const work = await newWorkTree(context);
    for (const strata of [serving, worker]) {
      const listed = await tryGit(work, ['ls-remote', gitUrl(strata, ada, 'project')]);
      assert.match(listed.stderr, /The requested URL returned error: 421/);
      const pushed = await tryGit(work, ['push', gitUrl(strata, ada, 'project'), 'main']);
      assert.match(pushed.stderr, /The requested URL returned error: 421/);
      const atPage = await fetch(`${strata.url}/ada/project/info/refs?service=git-upload-pack`);
      assert.equal(atPage.status, 421);
      const { detail } = (await atPage.json()) as { detail: string };
      assert.equal(detail, 'This node does not run the role git: the request belongs to another one');
    }
  });

  test('the website answers every path that is not of git, of the API or of a probe', async () => {
    for (const [path, type] of [
      ['/', /^text\/html/],
      ['/v1x', /^text\/html/],
      ['/v1', /^application\/json/],
      ['/v1/none?x', /^application\/json/],
      ['/.well-known/none', /^application\/json/],
      ['/.well-known/security.txtx', /^application\/json/],
      ['/.well-known/security.txt', /^text\/html/],
      ['/.well-known/change-password', /^text\/html/],
    ] as const) {
      assert.match((await fetch(serving.url + path)).headers.get('content-type') ?? '', type, path);
    }
  });

  test('each reports its pools of connections', async () => {
    const wanted = new Set(['requests', 'read_models', 'appends', 'log_reads', 'read_leases']);
    for (const strata of [serving, gitOnly, worker]) {
      const lines = await metrics(strata);
      for (const figure of ['connections_in_use', 'connections_max', 'waiting']) {
        const shown = lines.filter((line) => line.startsWith(`strata_database_${figure}{`));
        assert.deepEqual(new Set(shown.map((line) => /pool="(\w+)"\} \d+$/.exec(line)?.[1])), wanted);
      }
    }
  });

  test('a worker reports 0 for a sweep that has not yet run, and other nodes do not report it', async () => {
    const sweeps = (lines: readonly string[]) => lines.filter((line) => line.includes('work="layer-sweep"'));
    const none = 'strata_background_last_success_timestamp_seconds{work="layer-sweep"} 0';
    assert.deepEqual(sweeps(await metrics(worker)), [none]);
    assert.deepEqual(sweeps(await metrics(gitOnly)), []);
  });

  test('each reports how far the read models are behind, also those that do not write them', async () => {
    for (const strata of [gitOnly, worker]) {
      for (const unit of ['seconds', ...(logKind() === 'postgres' ? ['events'] : [])]) {
        const lags = async () =>
          (await metrics(strata)).filter((line) => line.startsWith(`strata_projection_lag_${unit}{`));
        await until(async () => (await lags()).every((line) => line.endsWith('} 0')));
        assert.ok((await lags()).length > 5);
      }
      const [position] = (await metrics(strata)).filter((line) => line.startsWith('strata_log_position '));
      assert.ok(Number(position?.split(' ')[1]) > 0, position);
    }
  });

  test('each reports which roles it runs', async () => {
    const worked = { workflows: 'ok', webhooks: 'ok', checkpoints: 'ok' };
    for (const [strata, roles, duties] of [
      [serving, ['api', 'website'], {}],
      [gitOnly, ['git'], {}],
      [worker, ['worker'], worked],
    ] as const) {
      const ready = await fetch(`${strata.url}/readyz`);
      assert.deepEqual(await ready.json(), { status: 'ok', roles, parts: { ...PARTS_OK, ...duties } });
      const lines = (await metrics(strata)).filter((line) => line.startsWith('strata_role{'));
      const names = ['api', 'git', 'website', 'worker'];
      const wanted = names.map((name) => `strata_role{role="${name}"} ${roles.some((role) => role === name) ? 1 : 0}`);
      assert.deepEqual(lines, wanted);
    }
  });
});

async function metrics(strata: Strata): Promise<readonly string[]> {
  return (await (await fetch(`${strata.url}/metrics`)).text()).split('\n');
}

/** Returns the metrics of events that the node's projections applied, by read model. */
async function appliedEvents(strata: Strata): Promise<readonly string[]> {
  return (await metrics(strata)).filter((line) => /^strata_projection_events_total\{.* [1-9]/.test(line));
}
