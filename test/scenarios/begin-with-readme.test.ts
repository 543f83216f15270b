/**
 * Kills the server between the steps of making a repository with a README: what is left is whole, either empty or with
 * its README, and the person can go on from its page.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser } from '../support/form-browser.ts';
import { leftovers } from '../support/leftovers.ts';
import { signIn } from '../support/site-browser.ts';
import { type Account, createAccount, git, gitUrl, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/**
 * Up to the append of the push the repository is empty, from it on the README is there. The steps between are those of
 * every push (crash.test.ts).
 */
const POINTS: readonly FailpointName[] = ['repository-created', 'push-appended'];

describe('A server killed while it makes a repository with a README', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
  });

  for (const point of POINTS) {
    test(`at ${point} leaves a whole repository, which its page completes`, async (context) => {
      strata = await strata.restart({ STRATA_FAILPOINT: point });
      const fields = { name: point, description: 'Cut short', default_branch: 'main', readme: 'yes' };
      await assert.rejects(browser.submit('/new', fields));
      for (const deadline = Date.now() + 10_000; strata.process.signalCode === null; await sleep(10)) {
        assert.ok(Date.now() < deadline, 'the server did not reach its fault point');
      }
      strata = await strata.restart({ STRATA_FAILPOINT: '' });

      const isComplete = point === 'push-appended';
      const home = await browser.get(`/ada/${point}`);
      assert.equal(home.status, 200);
      assert.equal(home.html.includes(`<h3 id="${point}"`), isComplete, 'the README');
      const work = await tempDir(context);
      const listed = await git(work, ['ls-remote', gitUrl(strata, ada, point)]);
      assert.equal(listed === '', !isComplete, listed);
      if (!isComplete) {
        const begun = await browser.submit(`/ada/${point}/readme`, {}, `/ada/${point}`);
        assert.equal(begun.location, `/ada/${point}`);
      }
      await git(work, ['clone', '--quiet', gitUrl(strata, ada, point), 'clone']);
      const clone = path.join(work, 'clone');
      await git(clone, ['fsck', '--full', '--strict']);
      assert.equal(await git(clone, ['show', 'HEAD:README.md']), `# ${point}\n\nCut short\n`);
      const pushed = (await shared.log.since()).findLast(({ type }) => type === 'RefsUpdated');
      assert.equal(pushed?.data['door'], 'website');
      assert.deepEqual(await leftovers(strata), []);
      const again = await browser.submit('/new', fields);
      assert.equal(again.status, 422, 'the name is taken');
    });
  }
});
