/** What owners undo, with real clients. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { activity, mirror, type Restored, restore } from '../support/undoing.ts';

describe('An owner', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let names = 0;

  beforeAll(async () => {
    strata = await startStrata(ending);
    ada = await createAccount(strata, 'ada');
  });

  async function newRepository(): Promise<{ readonly name: string; readonly url: string }> {
    const name = `undo-${++names}`;
    return { name, url: await createRepository(strata, ada, name) };
  }

  test('gets back a branch that was forced and one that was deleted, and a mirror is what it was', async (context) => {
    const { name, url } = await newRepository();
    const work = await newWorkTree(context);
    await commitFile(work, 'precious', 'work\n');
    await git(work, ['tag', '-a', 'v1', '-m', 'one']);
    await git(work, ['branch', 'feature']);
    await git(work, ['push', '--quiet', url, '--all']);
    await git(work, ['push', '--quiet', url, '--tags']);
    const before = await mirror(context, url);
    const [newest] = await activity(strata, ada, name);
    await git(work, ['reset', '--quiet', '--hard', 'HEAD~1']);
    await commitFile(work, 'other', 'history\n');
    await git(work, ['push', '--quiet', '--force', url, 'main', 'main:later', ':feature', ':refs/tags/v1']);
    assert.notEqual(await mirror(context, url), before);
    const planned = await restore(strata, ada, name, { event_id: newest?.id, dry_run: true });
    const restored = await restore(strata, ada, name, { event_id: newest?.id });
    assert.equal(restored.status, 200, restored.text);
    assert.deepEqual((restored.body as Restored).updates, (planned.body as Restored).updates);
    assert.equal(await mirror(context, url), before);
    const undone = await restore(strata, ada, name, { before_event_id: (restored.body as Restored).event_id });
    assert.equal(undone.status, 200, undone.text);
    assert.match(await mirror(context, url), /refs\/heads\/later/);
    const kinds = new Set((await activity(strata, ada, name)).slice(0, 8).map(({ kind }) => kind));
    assert.deepEqual([...kinds], ['restore']);
  });
});
