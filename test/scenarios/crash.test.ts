/**
 * The server killed by SIGKILL at every step of a push: what was acknowledged is there, what was not is whole or
 * absent, and the next push works.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { FAULT_POINTS, type FaultPoint } from '../../core/ports/fault-points.ts';
import {
  type Account,
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
import { tempDir } from '../support/temp-dir.ts';

/** Points behind the append: the push is committed although its client was never told. */
const COMMITTED: ReadonlySet<FaultPoint> = new Set(['push-appended', 'push-installed', 'push-answered'] as const);
const PUSH_POINTS = FAULT_POINTS.filter((point) => point.startsWith('push-'));

async function branchesOverRest(strata: Strata, account: Account): Promise<string> {
  const answer = await api(strata, account.token, 'GET', `/v1/repos/${account.username}/project/branches`);
  assert.equal(answer.status, 200, answer.text);
  const { branches } = answer.body as { branches: { name: string; commit: { hexsha: string } }[] };
  return branches.map(({ name, commit }) => `${commit.hexsha}\trefs/heads/${name}\n`).join('');
}

describe('A server killed', () => {
  for (const point of PUSH_POINTS) {
    test(`at ${point} keeps what was acknowledged and nothing by half`, async (context) => {
      let strata = await startStrata(context);
      const ada = await createAccount(strata, 'ada');
      const url = await createRepository(strata, ada, 'project');
      const work = await newWorkTree(context);
      const acknowledged = (await git(work, ['rev-parse', 'HEAD'])).trim();
      await git(work, ['push', '--quiet', url, 'main']);

      strata = await strata.restart({ STRATA_FAULT_POINT: point });
      const unacknowledged = await commitFile(work, 'second', 'second\n');
      if (point === 'push-parts-appended') {
        // Only a push too wide for one event has parts.
        const refs = Array.from({ length: 4_000 }, (_, n) => `create refs/heads/many/${n} ${unacknowledged}\n`);
        await git(work, ['update-ref', '--stdin'], refs.join(''));
      }
      const pushed = await tryGit(work, ['push', '--quiet', url, 'refs/heads/*']);
      if (point !== 'push-answered') assert.notEqual(pushed.code, 0, 'the server was to die before it answered');

      strata = await strata.restart({ STRATA_FAULT_POINT: '' });
      const listed = await git(work, ['ls-remote', url, 'refs/heads/main']);
      const expected = COMMITTED.has(point) ? unacknowledged : acknowledged;
      assert.equal(listed, `${expected}\trefs/heads/main\n`);
      assert.equal(await branchesOverRest(strata, ada), await git(work, ['ls-remote', '--heads', url]));
      const clones = await tempDir(context);
      await git(clones, ['clone', '--quiet', '--mirror', url, 'fresh.git']);
      await git(path.join(clones, 'fresh.git'), ['fsck', '--full', '--strict']);
      assert.deepEqual(await leftovers(strata), []);

      await git(work, ['push', '--quiet', url, 'refs/heads/*']);
      assert.equal(await branchesOverRest(strata, ada), await git(work, ['ls-remote', '--heads', url]));
    });
  }
});

/** Quarantines and temporary files that no running push owns. */
async function leftovers(strata: Strata): Promise<readonly string[]> {
  const entries = await readdir(strata.dataDir, { recursive: true });
  return entries.filter((entry) => !entry.startsWith('postgres/') && /quarantine\/.|tmp_|\.tmp$|incoming/.test(entry));
}
