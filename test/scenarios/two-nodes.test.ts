/** Two servers on one PostgreSQL and one layer store: every answer of either is as new as the log. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('On two servers', () => {
  const ending = suiteEnding();
  let first: Strata;
  let second: Strata;
  let ada: Account;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    [first, second] = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
    ada = await createAccount(first, 'ada');
  });

  test('a push on one is visible to the very next request to the other', async (context) => {
    const url = await createRepository(first, ada, 'seen');
    const there = gitUrl(second, ada, 'seen');
    const work = await newWorkTree(context);
    for (let round = 0; round < 10; round += 1) {
      const commit = await commitFile(work, 'file', `round ${round}\n`);
      await git(work, ['push', '--quiet', round % 2 === 0 ? url : there, 'main']);
      const other = round % 2 === 0 ? second : first;
      assert.equal(await git(work, ['ls-remote', gitUrl(other, ada, 'seen'), 'main']), `${commit}\trefs/heads/main\n`);
      const answer = await api(other, ada.token, 'GET', '/v1/repos/ada/seen/branches');
      const { branches } = answer.body as { branches: { commit: { hexsha: string } }[] };
      assert.equal(branches[0]?.commit.hexsha, commit);
    }
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', there, 'copy']);
  });

  test('a revoked token fails immediately on both', async (context) => {
    await createRepository(first, ada, 'revoked');
    const directory = await tempDir(context);
    for (const [revokedOn, usedOn] of [[first, second] as const, [second, first] as const]) {
      const token = await createToken(first, 'ada');
      const url = gitUrl(usedOn, { username: 'ada', token: token.token }, 'revoked');
      await git(directory, ['ls-remote', url]);
      const revoked = await api(revokedOn, ada.token, 'DELETE', `/v1/access-tokens/${token.id}`);
      assert.equal(revoked.status, 204);
      assert.match((await tryGit(directory, ['ls-remote', url])).stderr, /Authentication failed/);
    }
  });

  test('20 clients that push to one branch have exactly one winner in each round', async (context) => {
    const url = await createRepository(first, ada, 'race');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    for (let round = 0; round < 3; round += 1) {
      const rivals: string[] = [];
      for (let rival = 0; rival < 20; rival += 1) {
        await git(work, ['checkout', '--quiet', '--force', '-B', `rival-${rival}`, 'main']);
        rivals.push(await commitFile(work, 'winner', `${round} ${rival}\n`));
      }
      const pushes = rivals.map((_, rival) =>
        tryGit(work, ['push', '--quiet', rival % 2 === 0 ? url : gitUrl(second, ada, 'race'), `rival-${rival}:main`]),
      );
      const finished = await Promise.all(pushes);
      const winners = rivals.filter((_, rival) => finished[rival]?.code === 0);
      assert.equal(winners.length, 1, finished.map(({ stderr }) => stderr).join('\n'));
      assert.equal(await git(work, ['ls-remote', url, 'main']), `${winners[0]}\trefs/heads/main\n`);
      await git(work, ['branch', '--quiet', '--force', 'main', winners[0] ?? '']);
    }
  });
});
