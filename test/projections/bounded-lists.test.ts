/** Lists that strangers or a dead bucket can lengthen: their rows have a bound, and a rebuild finds the same ones. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'vitest';
import { LOG_START, streamName } from '../../core/kernel/envelope.ts';
import { type AccessTokenId, plusMs, type StorageBucketId } from '../../core/kernel/ids.ts';
import {
  BUCKET_ERROR_LISTED_MS,
  BUCKET_ERRORS_LISTED_MAX,
  EXCHANGED_TOKEN_KNOWN_MS,
} from '../../core/kernel/limits.ts';
import { digest } from '../../adapters/node/digest.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { newDatabase } from '../support/read-model-database.ts';
import { Appender, createMemoryEventStore, newUuid, startRunner } from '../support/read-models.ts';

async function serve(context: TestContext) {
  const events = createMemoryEventStore();
  const append = new Appender(events);
  const models = createModels({
    digest,
    workflows: [],
    events,
    complete: async (event) => event,
    objects: {
      open: () => {
        throw new Error('No test here reads Git');
      },
    },
  });
  const database = await newDatabase(context);
  const { runner } = await startRunner(context, { events, database, models: Object.values(models) });
  const reads = createReadModels({ digest, database, models, runner, clock: { now: () => append.now } });
  const current = async (): Promise<typeof reads> => {
    await reads.caughtUp(append.last);
    return reads;
  };
  const assertSameAfterRebuild = async (): Promise<void> => {
    for (const { projection, differences } of await runner.verify(null)) assert.equal(differences, 0, projection);
  };
  return { append, current, assertSameAfterRebuild };
}

describe('The errors of a bucket', () => {
  test('are listed up to their number, the newest, and those of other buckets beside them', async (context) => {
    const { append, current, assertSameAfterRebuild } = await serve(context);
    const account = await append.account('ada');
    const [busy, quiet] = [newUuid<StorageBucketId>(), newUuid<StorageBucketId>()];
    const fail = (bucket: string) =>
      append.append(streamName('bucketErrors', `${bucket}-20261121`), account, 'BucketErrorRecorded', {
        ...{ bucket_id: bucket, repository_id: null, operation: 'push', code: 'unreachable' },
      });
    const listed = async (bucket: StorageBucketId) =>
      (await current()).bucketErrors({ account, buckets: [bucket], repositories: null }, { offset: 0, limit: 2_000 });
    await fail(quiet);
    for (let n = 0; n < BUCKET_ERRORS_LISTED_MAX; n += 1) await fail(busy);
    const all = await listed(busy);
    assert.equal(all.total, BUCKET_ERRORS_LISTED_MAX);
    await fail(busy);
    const newest = await listed(busy);
    assert.equal(newest.total, BUCKET_ERRORS_LISTED_MAX);
    assert.deepEqual(newest.items.slice(1), all.items.slice(0, -1), 'the oldest gave way');
    assert.equal((await listed(quiet)).total, 1);
    await assertSameAfterRebuild();

    append.now = plusMs(append.now, BUCKET_ERROR_LISTED_MS);
    await fail(quiet);
    assert.equal((await listed(quiet)).total, 2, 'at their greatest age');
    append.now = plusMs(append.now, 1);
    await fail(quiet);
    assert.equal((await listed(quiet)).total, 2);
    assert.equal((await listed(busy)).total, 0, 'also of a bucket that fails no more');
    await assertSameAfterRebuild();
  });
});

describe('The ids of exchanged tokens', () => {
  test('are known until long after their ends', async (context) => {
    const { append, current, assertSameAfterRebuild } = await serve(context);
    const account = await append.account('ada');
    const exchange = async (expires_at: string): Promise<AccessTokenId> => {
      const id = newUuid<AccessTokenId>();
      await append.append(streamName('accessToken', id), account, 'AccessTokenExchanged', {
        ...{ account, trust_rule_id: newUuid(), rule_epoch: 0, subject_ref: newUuid(), scope: 'ALL_REPO', grants: [] },
        ...{ repository_ids: [], expires_at, secret_hash: '0'.repeat(64), token_prefix: 'strata_abcd' },
      });
      return id;
    };
    const known = async (id: AccessTokenId): Promise<boolean> => {
      return (await (await current()).tokensAmong([id], LOG_START)).has(id);
    };
    const first = await exchange(append.now);
    await exchange(plusMs(append.now, EXCHANGED_TOKEN_KNOWN_MS));
    assert.ok(await known(first));
    await assertSameAfterRebuild();
    const last = await exchange(plusMs(append.now, EXCHANGED_TOKEN_KNOWN_MS + 1));
    assert.ok(!(await known(first)));
    assert.ok(await known(last));
    await assertSameAfterRebuild();
  });
});
