/** Restorations and pushes of several clients at the same time, whatever is killed in between. */
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
  tryGit,
} from '../support/strata.ts';
import { activity, mirror, type Restored, restore } from '../support/undoing.ts';

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

  // The attack: clients push and restore at the same time while the server is killed, so that one overwrites unseen.
  test('and pushes at the same time: each change that was acknowledged had seen what it replaced', async (context) => {
    const { name, url } = await newRepository();
    const first = await newWorkTree(context);
    await git(first, ['push', '--quiet', url, 'main']);
    const [begun] = await activity(strata, ada, name);
    const acknowledged: Restored[] = [];
    const pushed: string[] = [];
    const statuses = new Set<number>();
    let over = false;
    const restoring = async (): Promise<void> => {
      while (!over) {
        const answer = await restore(strata, ada, name, { event_id: begun?.id }).catch(() => null);
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
    const changes = (await activity(strata, ada, name)).toReversed();
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
