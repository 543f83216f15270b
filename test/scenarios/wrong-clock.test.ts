/**
 * A node whose clock is set 40 days ahead while it runs: it takes no push, says why, and goes on when the clock is
 * right.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'vitest';
import { until } from '../support/read-models.ts';
import {
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts } from '../support/strata-on-postgres.ts';

const MACHINE_CLOCK = path.resolve(import.meta.dirname, '../support/machine-clock.ts');

test('a push to a node whose clock is 40 days ahead changes nothing and says why, and the next one is dated rightly', async (context) => {
  const shared = await sharedParts(context, 'postgres');
  const env = { ...shared.env, NODE_OPTIONS: `--import=${MACHINE_CLOCK}` };
  const strata = await startStrata(context, { log: 'postgres', env });
  const ada = await createAccount({ env: shared.env }, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const clock = async (): Promise<unknown> => {
    const answer = await fetch(`${strata.url}/readyz`);
    assert.equal(answer.status, 200, 'the node still serves reads');
    return ((await answer.json()) as { readonly parts: { readonly clock: unknown } }).parts.clock;
  };
  assert.equal(await clock(), 'ok');
  const before = await shared.log.head();

  strata.process.kill('SIGUSR2');
  await commitFile(work, 'second', 'second\n');
  const pushed = await tryGit(work, ['push', url, 'main']);
  assert.notEqual(pushed.code, 0);
  assert.match(pushed.stderr, /clock of this server differs.*nothing is changed/);
  const made = await api(strata, ada.token, 'POST', '/v1/repositories', { name: 'other' });
  assert.equal(made.status, 503, made.text);
  assert.match(made.text, /clock of this server differs/);
  assert.equal((await api(strata, ada.token, 'GET', '/v1/repositories')).status, 200);
  await until(async () => (await clock()) === 'degraded');
  await until(async () => {
    const metrics = await (await fetch(`${strata.url}/metrics`)).text();
    assert.match(metrics, /^strata_part_degraded\{part="log"\} 0$/m);
    const ahead = Number(/^strata_clock_difference_seconds (\S+)$/m.exec(metrics)?.[1]);
    return metrics.includes('strata_part_degraded{part="clock"} 1\n') && Math.round(ahead / 86_400) === -40;
  });
  assert.match(strata.log(), /refuses to append until its clock is set right/);
  assert.equal(await shared.log.head(), before, 'nothing was appended');

  strata.process.kill('SIGUSR2');
  await until(async () => (await clock()) === 'ok');
  await git(work, ['push', '--quiet', url, 'main']);
  const monthAhead = new Date(Date.now() + 30 * 24 * 60 * 60_000).toISOString();
  for (const { occurredAt } of await shared.log.since()) assert.ok(occurredAt < monthAhead, occurredAt);
});

test('a command on a machine whose clock is 40 days ahead is refused, with what to do', async (context) => {
  const shared = await sharedParts(context, 'postgres');
  const env = { ...shared.env, NODE_OPTIONS: `--import=${MACHINE_CLOCK}`, TEST_CLOCK_AHEAD: 'yes' };
  const args = ['account', 'create', '--username', 'ada', '--email', 'ada@example.org', '--password-stdin'];
  await assert.rejects(
    admin({ env }, args, 'correct horse battery\n'),
    /clock of this machine is \d+ s ahead of PostgreSQL's.*set right/,
  );
});
