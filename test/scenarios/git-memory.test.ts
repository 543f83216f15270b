/**
 * A server whose git processes are together in a control group: it is made and removed with the server, and a push
 * whose git takes more than the group may is refused, while everything else goes on.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { leftovers } from '../support/leftovers.ts';
import { boundOf, endedIn, groupOf, helperBelow, NO_MEMORY_GROUP, setBound } from '../support/memory-group.ts';
import { eventually, isAlive } from '../support/processes.ts';
import { skippedFor } from '../support/skipped.ts';
import {
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts } from '../support/strata-on-postgres.ts';

const MIB = 1024 * 1024;

function groupOfGit(strata: Strata): string {
  return groupOf(helperBelow(strata.process.pid));
}

/** The server's gauge of the bound. */
async function shownBound(strata: Strata): Promise<number> {
  const text = await (await fetch(`${strata.url}/metrics`)).text();
  return Number(/^strata_git_memory_group_bytes_max (\S+)$/m.exec(text)?.[1]);
}

/** Commits a file of this many bytes that compresses well, and a change of it: git checks the second as a delta. */
async function commitLargeChange(work: string, bytes: number): Promise<void> {
  const line = 'all work and no play makes a large file\n';
  const text = line.repeat(Math.ceil(bytes / line.length));
  await commitFile(work, 'large', text);
  await commitFile(work, 'large', `${text}changed\n`);
}

async function start(context: TestContext): Promise<Strata> {
  return startStrata(context, { env: (await sharedParts(context)).env });
}

describe('The memory of all git processes', skippedFor(NO_MEMORY_GROUP), () => {
  test('is bounded by a group that the server makes, shows, and removes at its end', async (context) => {
    const strata = await start(context);
    const folder = groupOfGit(strata);
    assert.equal(path.dirname(folder), groupOf(strata.process.pid ?? 0));
    assert.equal(await shownBound(strata), boundOf(folder));
    assert.ok(strata.log().includes(folder), 'the log names it');
    assert.equal(await strata.stop(), 0);
    assert.ok(!existsSync(folder));
  });

  test('has no group of a killed server left after the next start, and one of its own on each server', async (context) => {
    const [first, other] = await Promise.all([start(context), start(context)]);
    const [before, others] = [groupOfGit(first), groupOfGit(other)];
    assert.notEqual(before, others);
    const helper = helperBelow(first.process.pid);
    await first.kill();
    await eventually('its helper is gone', () => !isAlive(helper));
    assert.ok(existsSync(before));
    const again = await first.restart();
    assert.ok(!existsSync(before));
    assert.ok(existsSync(groupOfGit(again)));
    assert.equal(groupOfGit(other), others);
  });

  test('is not outgrown: such a push is refused with the reason, changes nothing, and ends nobody else', async (context) => {
    const strata = await start(context);
    const [ada, bob] = [await createAccount(strata, 'ada'), await createAccount(strata, 'bob')];
    const url = await createRepository(strata, ada, 'large');
    const others = await createRepository(strata, bob, 'small');
    const [work, modest] = [await newWorkTree(context), await newWorkTree(context)];
    await git(work, ['push', '--quiet', url, 'main']);
    const before = await git(work, ['ls-remote', url]);
    await commitLargeChange(work, 64 * MIB);
    const folder = groupOfGit(strata);
    const helper = helperBelow(strata.process.pid);
    const bound = boundOf(folder);
    setBound(folder, 120 * MIB);

    const pushed = await tryGit(work, ['push', url, 'main']);
    assert.equal(pushed.code, 1, pushed.stderr);
    assert.match(pushed.stderr, /the server ran out of memory for git while it checked the pack: nothing was changed/);
    assert.equal(endedIn(folder), 1);
    assert.equal(await git(work, ['ls-remote', url]), before);
    assert.deepEqual(await leftovers(strata), []);

    // Too large to be checked in process, so that git runs in the group for it.
    await commitFile(modest, 'noise', randomBytes(100_000).toString('hex'));
    await git(modest, ['push', '--quiet', others, 'main']);
    await git(modest, ['clone', '--quiet', '--mirror', others, 'back.git']);
    assert.equal(helperBelow(strata.process.pid), helper);

    setBound(folder, bound);
    await git(work, ['push', '--quiet', url, 'main']);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    assert.ok((await git(work, ['ls-remote', url])).includes(`${head}\trefs/heads/main`));
  });
});
