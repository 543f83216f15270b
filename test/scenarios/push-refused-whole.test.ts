/** Pushes that are refused as a whole before their pack is looked at: git gets one line for each ref that it pushed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { PUSH_OPTIONS_MAX } from '../../core/git/wire/command-list.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { eventually } from '../support/processes.ts';
import {
  type Account,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const UNLIMITED = { repos: null, storage_bytes: null, transfer_bytes: null, ingress_bytes: null, byo_storage: true };

describe('A push that is refused as a whole', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;

  beforeAll(async () => {
    const plans = path.join(await tempDir(ending), 'plans.json');
    // Tokens leave 1,000 to the person.
    const FREE = { ...UNLIMITED, changes_per_month: 1_003 };
    await writeFile(plans, JSON.stringify({ FREE, PRO: UNLIMITED, PLATFORM: UNLIMITED }));
    strata = await startStrata(ending, { env: { STRATA_PLANS: plans } });
    ada = await createAccount(strata, 'ada', 'FREE');
    work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await createRepository(strata, ada, 'app'), 'main']);
  });

  const refspecs = (count: number): string[] => Array.from({ length: count }, (_, n) => `main:refs/heads/branch-${n}`);

  async function assertAllRejected(args: readonly string[], refs: number, reason: RegExp): Promise<void> {
    const pushed = await tryGit(work, [
      'push',
      ...args.slice(0, -refs),
      gitUrl(strata, ada, 'app'),
      ...args.slice(-refs),
    ]);
    assert.notEqual(pushed.code, 0);
    assert.match(pushed.stderr, reason);
    assert.doesNotMatch(pushed.stderr, /remote failed to report status/);
    assert.equal(pushed.stderr.match(/! \[remote rejected\]/g)?.length, refs, pushed.stderr);
  }

  test('for its options says so for each ref', async () => {
    const options = Array.from({ length: PUSH_OPTIONS_MAX + 1 }, (_, n) => ['-o', `${n}`]).flat();
    await assertAllRejected([...options, ...refspecs(3)], 3, /unpack failed: more than 100 push options/);
  });

  test('for the changes of its account says so for each ref, also for one of a bad name', async () => {
    await eventually('the changes of the account are used up', async () => {
      const pushed = await tryGit(work, ['push', gitUrl(strata, ada, 'app'), `main:refs/heads/${randomUUID()}`]);
      return pushed.code !== 0;
    });
    const args = [...refspecs(40), 'main:refs/strata/mine'];
    await assertAllRejected(args, args.length, /unpack failed: .*changes of this month/);
    assert.doesNotMatch(await git(work, ['ls-remote', gitUrl(strata, ada, 'app')]), /branch-/);
  });
});
