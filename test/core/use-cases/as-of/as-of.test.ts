/** Moments of an account's log, and its repositories as they stood there. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { type LogPosition, streamName } from '../../../../core/kernel/envelope.ts';
import { plusMs, type RepositoryId } from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import { logAsOf, repositoryAt } from '../../../../core/use-cases/as-of/as-of.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { startNode } from '../../../support/node.ts';
import { Appender } from '../../../support/read-models.ts';
import { branch, moved, oid } from '../../../support/repository-history.ts';
import { createDice } from '../../../support/seeded.ts';
import { watchLog } from '../../../support/watched-log.ts';

/** An account with a node that saves snapshots, and what reads its past. */
async function openPast() {
  const log = watchLog();
  const snapshots = createMemorySnapshots();
  const append = new Appender(log);
  const node = await startNode(log, { snapshots });
  const past = createPastEntities({
    ...{ events: log, entities: node.entities, snapshots, complete: async (event) => event },
    onFault: (_what, cause) => {
      throw cause;
    },
  });
  const accountId = await append.account('ada');
  return { log, node, past, append, accountId };
}

type World = Awaited<ReturnType<typeof openPast>>;

/** The refs and the default branch at a position: null while the account does not have the repository. */
type Expected = { readonly refs: JsonObject; readonly defaultBranch: string } | null;

async function shownAt({ past, accountId }: World, id: RepositoryId, position: LogPosition): Promise<Expected> {
  const found = await repositoryAt({ past }, { id, accountId }, position);
  if (found === null) return null;
  const refs = [...found.entity.state.refs.entries()].map(([name, ref]) => [name, ref.id] as const);
  return { refs: Object.fromEntries(refs), defaultBranch: found.defaultBranch };
}

describe('A repository as of a position', () => {
  test('is what a model says, through pushes, deletions of branches, deletion and restoration', async () => {
    const world = await openPast();
    const { append, accountId } = world;
    const dice = createDice(15);
    const expected: (readonly [LogPosition, Expected])[] = [[append.last, null]];
    const id = await append.repository(accountId, 'project', { default_branch: 'trunk' });
    const refs = new Map<string, string>();
    let defaultBranch = 'trunk';
    const note = (isThere: boolean) => {
      const state = isThere ? { refs: Object.fromEntries(refs), defaultBranch } : null;
      expected.push([append.last, state]);
    };
    note(true);
    const stream = streamName('repository', id);
    for (let n = 0; n < 60; n += 1) {
      const name = branch(`b${dice.below(8)}`);
      const before = refs.get(name);
      if (n === 40) {
        await append.deleteRepository(accountId, id, 'project');
        note(false);
        const fields = { default_branch: defaultBranch, size_bytes: 0, pushed_at: null };
        await append.restoreRepository(accountId, id, 'project', fields);
      } else if (dice.chance(0.1)) {
        defaultBranch = `b${dice.below(8)}`;
        await append.append(stream, accountId, 'DefaultBranchChanged', { default_branch: defaultBranch });
      } else if (before !== undefined && dice.chance(0.3)) {
        refs.delete(name);
        await append.push(accountId, id, { updates: [moved(name, oid(before), null)] });
      } else {
        const after = oid(`${n}a`);
        refs.set(name, after);
        const updates = [moved(name, before === undefined ? null : oid(before), after)];
        await append.push(accountId, id, { updates });
      }
      note(true);
      await append.repository(accountId, `other-${n}`);
    }
    for (const [position, state] of expected) {
      const shown = await shownAt(world, id, position);
      assert.deepEqual(shown, state, `at ${position}`);
    }
  });

  test('is read from the nearest snapshot, however long its stream', async () => {
    const world = await openPast();
    const { append, accountId, node, log, past } = world;
    const id = await append.repository(accountId, 'busy');
    const positions: LogPosition[] = [await append.push(accountId, id, { updates: [] })];
    await node.entities.get(repositories, id);
    for (let n = 1; n < 2_500; n += 1) positions.push(await append.push(accountId, id, { updates: [] }));
    await node.entities.barrier();
    for (const [revision, pages] of [
      [2_499, 0],
      [2_400, 5],
      [2_001, 1],
      [999, 1],
      [3, 1],
    ] as const) {
      const { reads } = log.counts;
      const { revision: found, position } = await past.repositoryAsOf(id, positions[revision] as LogPosition);
      assert.deepEqual([found, position], [revision, positions[revision]]);
      // The steps of the binary search, the snapshot's last event, and the pages after it.
      const most = 12 + 1 + pages;
      assert.ok(log.counts.reads - reads <= most, `${log.counts.reads - reads} reads of ${most} for ${revision}`);
    }
  });

  test('is null if another account has it', async () => {
    const world = await openPast();
    const { append, accountId, past } = world;
    const id = await append.repository(accountId, 'project');
    const other = await append.account('eve');
    assert.equal(await repositoryAt({ past }, { id, accountId: other }, append.last), null);
  });
});

describe('A moment', () => {
  test('selects all entries up to it, and is refused after both now and the last entry', async () => {
    const { append, accountId, node, log } = await openPast();
    const readModels = createMemoryAccountLog({ events: log, digest });
    const made = append.now;
    node.clock.set(plusMs(made, 10_000));
    // Another node's clock is ahead of this one's.
    append.now = plusMs(made, 60_000);
    await append.repository(accountId, 'ahead');
    const asOf = (ms: number | null) =>
      logAsOf({ readModels, clock: node.clock }, accountId, ms === null ? null : plusMs(made, ms), append.last);
    const sizeAsOf = async (ms: number | null) => {
      const found = await asOf(ms);
      return 'refused' in found ? found.refused.code : found.size;
    };
    const sizes = await Promise.all([-1, 0, 10_000, 10_001, 59_999, 60_000, 60_001, null].map(sizeAsOf));
    assert.deepEqual(sizes, [0, 1, 1, 1, 1, 2, 'moment-in-future', 2]);
  });
});
