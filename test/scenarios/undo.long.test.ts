/** Restorations and pushes of several clients at once, whatever is killed meanwhile. */
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
  tryGit,
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

const ZERO = '0'.repeat(40);

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

  // The attack: clients push and restore at once while the server is killed, so that one overwrites unseen.
  test('and pushes at once: each change that was acknowledged had seen what it replaced', async (context) => {
    const { name, url } = await newRepository();
    const first = await newWorkTree(context);
    await git(first, ['push', '--quiet', url, 'main']);
    const [begun] = await activity(name);
    const acknowledged: Restored[] = [];
    const pushed: string[] = [];
    const statuses = new Set<number>();
    let over = false;
    const restoring = async (): Promise<void> => {
      while (!over) {
        const answer = await restore(name, { event_id: begun?.id }).catch(() => null);
        if (answer === null) continue;
        statuses.add(answer.status);
        if (answer.status === 200) acknowledged.push(answer.body as Restored);
      }
    };
    const pushing = async (client: number): Promise<void> => {
      const work = await newWorkTree(context);
      await git(work, ['fetch', '--quiet', url, 'main']);
      await git(work, ['reset', '--quiet', '--hard', 'FETCH_HEAD']);
      for (let round = 0; round < 6; round += 1) {
        const commit = await commitFile(work, `file-${client}`, `${round}\n`);
        if ((await tryGit(work, ['push', '--quiet', '--force', url, 'main', `main:client-${client}`])).code === 0) {
          pushed.push(commit);
        }
      }
    };
    const restorers = [restoring(), restoring()];
    const pushers = [pushing(1), pushing(2)];
    await Promise.race(pushers);
    strata = await strata.restart();
    await Promise.all(pushers);
    over = true;
    await Promise.all(restorers);
    for (const status of statuses) assert.ok([200, 409, 503].includes(status), `${status}`);
    const changes = (await activity(name)).toReversed();
    const refs = new Map<string, string>();
    for (const { ref, before, after } of changes) {
      assert.equal(before, refs.get(ref) ?? ZERO, `${ref} was overwritten unseen`);
      refs.set(ref, after);
    }
    const made = Map.groupBy(changes, ({ id }) => id);
    for (const { event_id, updates } of acknowledged) {
      if (event_id === null) continue;
      const rows = (made.get(event_id) ?? []).map(({ ref, before, after }) => ({ ref, before, after }));
      assert.deepEqual(
        rows,
        updates.map(({ ref, before, after }) => ({ ref, before, after })),
      );
    }
    for (const commit of pushed)
      assert.ok(
        changes.some(({ after }) => after === commit),
        `${commit} is not in the log`,
      );
    assert.ok(acknowledged.some(({ event_id }) => event_id !== null) && pushed.length > 0);
    await mirror(context, url);
  });
});
