/** The step of a compaction: what it leaves for later, so that no place waits for another. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'vitest';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import { COMPACTION_IDLE_MS } from '../../../core/kernel/limits.ts';
import { BUCKET_COMPACTIONS_AT_ONCE_MAX, createCompactionSteps } from '../../../workflows/layer-compaction/steps.ts';
import { accepted, newAccount, newRepository } from '../../support/accounts.ts';
import { startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { keepLog } from '../../support/log.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../support/memory/layer-store.ts';
import { startNode } from '../../support/node.ts';
import { newBucket, newRepositoryIn } from '../../support/stored-buckets.ts';

describe('A compaction in the bucket of a user', () => {
  test('that is under way keeps others of this bucket, and of too many buckets, for later, and none of the platform', async () => {
    const node = await startNode(createMemoryEventStore());
    const account = await newAccount(node, 'ada');
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const done: RepositoryId[] = [];
    let isHeld = true;
    const steps = createCompactionSteps({
      ...node,
      entities: {
        barrier: async () => {
          if (isHeld) await held;
          return node.entities.barrier();
        },
        known: () => null,
        get: (decider, id) => node.entities.get(decider, id),
        reload: (decider, id) => node.entities.reload(decider, id),
        observe: (...seen) => node.entities.observe(...seen),
        residents: () => node.entities.residents(),
        appliedPosition: () => node.entities.appliedPosition(),
        start: () => node.entities.start(),
        close: () => node.entities.close(),
      },
      layers: layersIn(createMemoryLayerStore()),
      objects: {
        merge: async () => assert.fail('There is nothing to merge'),
        keep: async () => assert.fail('There is nothing to drop'),
      },
      log: keepLog(),
      retentionMs: 1_000,
      notifiedTo: async () => null,
      compactions: {
        want: async () => undefined,
        find: async (repository) => ({ account, repository }),
        done: async (repository) => {
          done.push(repository);
        },
      },
    });
    const compact = (id: RepositoryId) =>
      steps['compact']?.({ id, revision: 0 }, new AbortController().signal) ?? assert.fail();
    const buckets = [];
    for (let number = 0; number <= BUCKET_COMPACTIONS_AT_ONCE_MAX; number += 1) {
      buckets.push(await newBucket(node, account, `bucket-${number}`));
    }
    const inBuckets: RepositoryId[] = [];
    for (const [number, bucket] of buckets.entries()) {
      inBuckets.push((await newRepositoryIn(node, account, bucket, `r${number}`)).id);
    }
    const [first = assert.fail()] = buckets;
    const beside = (await newRepositoryIn(node, account, first, 'beside')).id;
    const onPlatform = accepted(await newRepository(node, account, 'plain')).id;
    const underWay = inBuckets.slice(0, 1).map(compact);
    await new Promise((resolve) => setImmediate(resolve));
    isHeld = false;
    await compact(beside);
    assert.deepEqual(done, []);
    isHeld = true;
    underWay.push(...inBuckets.slice(1, -1).map(compact));
    await new Promise((resolve) => setImmediate(resolve));
    isHeld = false;
    const beyond = inBuckets.at(-1) ?? assert.fail();
    await Promise.all([compact(beside), compact(beyond), compact(onPlatform)]);
    assert.deepEqual(done, [onPlatform]);
    release();
    await Promise.all(underWay);
    await Promise.all([compact(beside), compact(beyond)]);
    assert.equal(done.length, inBuckets.length + 2);
  });
});

describe('A compaction of a repository that is pushed to all the time', () => {
  test('merges once, and leaves the few layers that came in between for later', async (context) => {
    const reading = await startGitReading();
    context.onTestFinished(() => reading.close());
    const { node, database, account } = reading;
    const push = async () => {
      await reading.push({ 'refs/heads/main': reading.git.commit({ file: randomBytes(300) }) });
    };
    for (let pushes = 0; pushes < 5; pushes += 1) await push();
    const repository = (await reading.current()).id;
    const wanted: number[] = [];
    let merges = 0;
    const steps = createCompactionSteps({
      ...node,
      layers: layersIn(database.layers),
      objects: database.database,
      failpoint: async (point) => {
        if (point !== 'compaction-layer-stored') return;
        merges += 1;
        for (let pushes = 0; pushes < 3; pushes += 1) await push();
      },
      log: keepLog(),
      retentionMs: 1_000,
      notifiedTo: async () => null,
      compactions: {
        want: async (_compaction, dueAt) => void wanted.push(Date.parse(dueAt) - Date.parse(node.clock.now())),
        find: async () => ({ account, repository }),
        done: async () => undefined,
      },
    });
    await steps['compact']?.({ id: repository, revision: 0 }, new AbortController().signal);
    assert.equal(merges, 1);
    assert.equal((await reading.current()).entity.state.layers.length, 4);
    assert.deepEqual(wanted, [COMPACTION_IDLE_MS]);
  });
});
