/** What owners undo, with real clients. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test, type TestContext } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
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
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

interface Change {
  readonly id: string;
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  readonly kind: string;
}

interface Restored {
  readonly event_id: string | null;
  readonly updates: readonly Omit<Change, 'id'>[];
}

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

  const restore = (name: string, body: object) => api(strata, ada.token, 'POST', `/v1/repos/ada/${name}/restore`, body);
  const activity = async (name: string): Promise<readonly Change[]> => {
    const changes: Change[] = [];
    for (let page = 0; ; page += 1) {
      const { body } = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}/activity?limit=100&page=${page}`);
      const listed = body as { readonly activity: readonly Change[]; readonly pagination: { has_more: boolean } };
      changes.push(...listed.activity);
      if (!listed.pagination.has_more) return changes;
    }
  };

  async function mirror(context: TestContext, url: string): Promise<string> {
    const folder = path.join(await tempDir(context), 'mirror.git');
    await git(path.dirname(folder), ['clone', '--quiet', '--mirror', url, folder]);
    await git(folder, ['fsck', '--full', '--strict']);
    return git(folder, ['for-each-ref', '--format=%(objectname) %(refname)']);
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
    const [newest] = await activity(name);
    await git(work, ['reset', '--quiet', '--hard', 'HEAD~1']);
    await commitFile(work, 'other', 'history\n');
    await git(work, ['push', '--quiet', '--force', url, 'main', 'main:later', ':feature', ':refs/tags/v1']);
    assert.notEqual(await mirror(context, url), before);
    const planned = await restore(name, { event_id: newest?.id, dry_run: true });
    const restored = await restore(name, { event_id: newest?.id });
    assert.equal(restored.status, 200, restored.text);
    assert.deepEqual((restored.body as Restored).updates, (planned.body as Restored).updates);
    assert.equal(await mirror(context, url), before);
    const undone = await restore(name, { before_event_id: (restored.body as Restored).event_id });
    assert.equal(undone.status, 200, undone.text);
    assert.match(await mirror(context, url), /refs\/heads\/later/);
    const kinds = new Set((await activity(name)).slice(0, 8).map(({ kind }) => kind));
    assert.deepEqual([...kinds], ['restore']);
  });
});
