/**
 * Kills the server with SIGKILL at every step between two writes: acknowledged writes are kept, each other write is
 * complete or absent, and the next attempt works.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { FAILPOINTS, type FailpointName } from '../../core/ports/failpoints.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { killSample } from '../support/kill-sample.ts';
import { leftovers } from '../support/leftovers.ts';
import { eventually } from '../support/processes.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createAccountByCommand,
  createRefs,
  createRepository,
  createToken,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/** At these points the append is done: the push is committed although its client got no answer. */
const COMMITTED: ReadonlySet<FailpointName> = new Set(['push-appended', 'push-installed', 'push-answered'] as const);
const PUSH_POINTS = FAILPOINTS.filter((point) => point.startsWith('push-'));
/** Only a push too wide for one event is stored in parts; with long names few refs are enough. */
const WIDE_NAMES = Array.from({ length: 200 }, (_, n) => `refs/heads/${`${'long'.repeat(60)}/`.repeat(8)}${n}`);
/** A small pack is in memory until it is committed, and longer; git writes a large one. */
const PACKS = [
  { pack: 'small', content: 'second\n' },
  { pack: 'large', content: randomBytes(100_000).toString('base64') },
] as const;
const DELETION_SPAN_MS = 30_000;

const DIES_AT = (point: FailpointName) => ({ STRATA_FAILPOINT: point });
const LIVES = { STRATA_FAILPOINT: '' };

const nameOf = ({ point, pack }: { readonly point: string; readonly pack: string }): string => `${point}-${pack}`;

describe('A server killed', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
  });

  const pushes = PUSH_POINTS.flatMap((point) => PACKS.map((of) => ({ point, ...of })));
  const sample = killSample(pushes.map(nameOf));
  for (const { point, pack, content } of pushes) {
    const name = nameOf({ point, pack });
    const title = `at ${point} of a ${pack} pack keeps acknowledged pushes and nothing incomplete`;
    test(title, sample(name), async (context) => {
      const url = await createRepository(strata, ada, name);
      const work = await newWorkTree(context);
      const acknowledged = (await git(work, ['rev-parse', 'HEAD'])).trim();
      await git(work, ['push', '--quiet', url, 'main']);

      strata = await strata.restart(DIES_AT(point));
      const unacknowledged = await commitFile(work, 'second', content);
      if (point === 'push-parts-appended') await createRefs(work, WIDE_NAMES, unacknowledged);
      const pushed = await tryGit(work, ['push', '--quiet', url, 'refs/heads/*']);
      if (point !== 'push-answered') assert.notEqual(pushed.code, 0, 'the server was to die before it answered');
      await hasDied(strata);
      // The killed push must have left files for the restart to sweep, or the check at the end would prove nothing.
      if (point === 'push-pack-received' && pack === 'large') assert.notDeepEqual(await leftovers(strata), []);

      strata = await strata.restart(LIVES);
      const listed = await git(work, ['ls-remote', url]);
      const expected = COMMITTED.has(point) ? unacknowledged : acknowledged;
      assert.equal(listed, `${expected}\tHEAD\n${expected}\trefs/heads/main\n`);
      await isWhole(context, strata, ada, name, url);

      await git(work, ['push', '--quiet', url, 'refs/heads/*']);
      assert.match(await git(work, ['ls-remote', url, 'refs/heads/main']), new RegExp(unacknowledged));
      await isWhole(context, strata, ada, name, url);
    });
  }

  test('at repository-closed has deleted the repository, and a restarted server releases its name', async (context) => {
    const url = await createRepository(strata, ada, 'closed');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    strata = await strata.restart(DIES_AT('repository-closed'));
    await assert.rejects(api(strata, ada.token, 'DELETE', '/v1/repos/ada/closed'));
    await hasDied(strata);

    strata = await strata.restart(LIVES);
    assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/closed')).status, 404);
    assert.match((await tryGit(work, ['ls-remote', url])).stderr, /Repository not found/);
    assert.equal(await namesListed(strata, ada).then((names) => names.includes('closed')), false);
    for (const deadline = Date.now() + DELETION_SPAN_MS; ; await sleep(200)) {
      const again = await api(strata, ada.token, 'POST', '/v1/repositories', { name: 'closed' });
      if (again.status === 201) break;
      assert.equal(again.status, 409, again.text);
      assert.ok(Date.now() < deadline, 'the deletion was not finished');
    }
    assert.equal(await git(work, ['ls-remote', url]), '', 'the new repository holds nothing of the old');
  });

  test('at account-username-claimed has created no account, and the email address is free', async () => {
    await assert.rejects(createAccountByCommand(dying(strata, 'account-username-claimed'), 'bert'), /exited null/);
    await assert.rejects(createToken(strata, 'bert'), /no account/);
    // The claim expires after ten minutes; until then the username is taken.
    await assert.rejects(createAccountByCommand(strata, 'bert'), /taken/i);
    const args = ['account', 'create', '--username', 'bertha', '--email', 'bert@example.org', '--password-stdin'];
    await admin(strata, args, 'correct horse battery\n');
  });

  test('at account-created has created the whole account', async (context) => {
    await assert.rejects(createAccountByCommand(dying(strata, 'account-created'), 'cleo'), /exited null/);
    const { token } = await createToken(strata, 'cleo');
    const url = await createRepository(strata, { id: '', username: 'cleo', token }, 'project');
    await git(await newWorkTree(context), ['push', '--quiet', url, 'main']);
    await assert.rejects(createAccountByCommand(strata, 'cleo'), /taken/i);
  });
});

test('A server killed with its own PostgreSQL comes back with every acknowledged push', async (context) => {
  let strata = await startStrata(context);
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'embedded');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  strata = await strata.restart(DIES_AT('push-appended'));
  const second = await commitFile(work, 'second', 'second\n');
  assert.notEqual((await tryGit(work, ['push', '--quiet', url, 'main'])).code, 0);
  strata = await strata.restart(LIVES);
  assert.equal(await git(work, ['ls-remote', url]), `${second}\tHEAD\n${second}\trefs/heads/main\n`);
  await isWhole(context, strata, ada, 'embedded', url);
});

/** Returns the environment of a `strata-admin` that dies at this point. */
function dying(strata: Strata, point: FailpointName): Pick<Strata, 'env'> {
  return { env: { ...strata.env, ...DIES_AT(point) } };
}

/** Checks that the server reached the point and died: a test that kills nothing would prove nothing. */
async function hasDied({ process }: Strata): Promise<void> {
  for (const deadline = Date.now() + 10_000; process.signalCode === null; await sleep(10)) {
    assert.ok(Date.now() < deadline, 'the server did not reach its fault point');
  }
  assert.equal(process.signalCode, 'SIGKILL');
}

/**
 * Checks that a new clone passes git fsck, that REST lists the refs of git ls-remote, and that no quarantine is left.
 */
async function isWhole(
  context: Parameters<typeof tempDir>[0],
  strata: Strata,
  account: Account,
  name: string,
  url: string,
): Promise<void> {
  const clones = await tempDir(context);
  await git(clones, ['clone', '--quiet', '--mirror', url, 'fresh.git']);
  await git(path.join(clones, 'fresh.git'), ['fsck', '--full', '--strict']);
  const answer = await api(strata, account.token, 'GET', `/v1/repos/${account.username}/${name}/branches`);
  assert.equal(answer.status, 200, answer.text);
  const { branches } = answer.body as { branches: { name: string; commit: { hexsha: string } }[] };
  const overRest = branches.map((branch) => `${branch.commit.hexsha}\trefs/heads/${branch.name}\n`).join('');
  assert.equal(overRest, await git(clones, ['ls-remote', '--heads', url]));
  // The running server may be writing a manifest.
  await eventually('nothing is left over', async () => (await leftovers(strata)).length === 0);
}

async function namesListed(strata: Strata, account: Account): Promise<readonly string[]> {
  const answer = await api(strata, account.token, 'GET', '/v1/repositories?limit=100');
  return (answer.body as { repositories: { name: string }[] }).repositories.map(({ name }) => name);
}
