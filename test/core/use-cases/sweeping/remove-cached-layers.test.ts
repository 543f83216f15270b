/** A node's cache forgets repositories whose layers went, as the event arrives and for what was missed. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decideAccount } from '../../../../core/account/decide.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { RepositoryId } from '../../../../core/kernel/ids.ts';
import { execute } from '../../../../core/runtime/execute.ts';
import { letLayersGo } from '../../../../core/use-cases/repositories/expire-layers-early.ts';
import { closeRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { createCacheDrops } from '../../../../core/use-cases/sweeping/remove-cached-layers.ts';
import { newAccount, newRepository } from '../../../support/accounts.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryObjects } from '../../../support/memory/object-database.ts';
import { appendPush } from '../../../support/memory/pushes.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { watchLog } from '../../../support/watched-log.ts';

const RUNNING = { aborted: false };

async function cached() {
  const log = watchLog(createMemoryEventStore());
  const node = await startNode(log);
  const objects = createMemoryObjects();
  const account = await newAccount(node, 'ada');
  const ids: RepositoryId[] = [];
  for (const name of ['one', 'two']) {
    const repository = await newRepository(node, account, name);
    const tip = objects.commit({ tree: objects.tree({}), seconds: 1 });
    await appendPush(node, objects, { id: repository.id, accountId: account }, { 'refs/heads/main': tip }, 100);
    ids.push(repository.id);
  }
  const [one = assert.fail(), two = assert.fail()] = ids;
  const held = new Set(ids);
  const faults: unknown[] = [];
  const drops = createCacheDrops({
    events: log,
    entities: node.entities,
    objects: {
      cached: () => [...held],
      drop: async (id) => {
        held.delete(id);
      },
    },
    onFault: (cause) => faults.push(cause),
  });
  const origin = { account, cause: CAUSE };
  const purge = async (id: RepositoryId) => {
    await closeRepository(node, origin, id);
    await letLayersGo(node, origin, { id, all: true, reason: 'purge' });
  };
  const followed = async () => {
    const head = (await log.readAll(LOG_START, 1_000)).at(-1)?.position;
    assert.equal(head, await log.head());
    await drops.catchUp(RUNNING);
  };
  const erase = () =>
    execute(node, accounts, account, { account, cause: CAUSE }, (state) =>
      decideAccount(state, { type: 'EraseAccount' }),
    );
  return {
    erase,
    log,
    one,
    two,
    held,
    faults,
    drops,
    purge,
    followed,
    close: (id: RepositoryId) => closeRepository(node, origin, id),
  };
}

describe('What a node has cached of a repository', () => {
  test('is dropped when its layers go, while others stay', async () => {
    const { one, two, held, drops, purge, followed, faults } = await cached();
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], [one, two]);
    await purge(one);
    await followed();
    assert.deepEqual([[...held], faults], [[two], []]);
    await drops.close();
  });

  test('is dropped at the start if they went while the node was down', async () => {
    const { one, two, held, drops, purge } = await cached();
    await purge(two);
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], [one]);
    await drops.close();
  });

  // Layers in a bucket of the account stay its owner's, so no event lets them go.
  test('is dropped at the erasure of its account, whatever becomes of its layers', async () => {
    const { held, drops, erase, followed } = await cached();
    await drops.catchUp(RUNNING);
    await erase();
    await followed();
    assert.deepEqual([...held], []);
    await drops.close();
  });

  test('is dropped at the start if the account was erased while the node was down', async () => {
    const { held, drops, erase } = await cached();
    await erase();
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], []);
    await drops.close();
  });

  // A fetch that began before the erasure read the refs and caches the objects after it: they would stay.
  test('is dropped again if a request that was under way cached it once more', async () => {
    const { one, two, held, drops, purge, erase, followed } = await cached();
    await drops.catchUp(RUNNING);
    await purge(one);
    await followed();
    held.add(one);
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], [two]);
    await erase();
    await followed();
    held.add(two);
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], []);
    await drops.catchUp(RUNNING);
    held.add(one);
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], [one], 'it is not dropped again and again');
    await drops.close();
  });

  test('stays after a deletion, which may be undone', async () => {
    const { one, two, held, drops, close, followed } = await cached();
    await drops.catchUp(RUNNING);
    await close(one);
    await followed();
    assert.deepEqual([...held], [one, two]);
    await drops.close();
  });

  test('is looked at again if the log could not be read the first time', async () => {
    const { two, held, drops, purge, one, log } = await cached();
    await purge(two);
    log.on.read = () => {
      throw new Error('down');
    };
    await assert.rejects(drops.catchUp(RUNNING), /down/);
    log.on.read = undefined;
    await drops.catchUp(RUNNING);
    assert.deepEqual([...held], [one]);
    await drops.close();
  });
});
