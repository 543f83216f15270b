/** Lists that strangers or a dead bucket can lengthen: their rows have a bound, and a rebuild finds the same ones. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { LOG_START, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { type AccessTokenId, plusMs, type RepositoryId, type StorageBucketId } from '../../core/kernel/ids.ts';
import { BUCKET_ERRORS_LISTED_MAX } from '../../core/kernel/limits.ts';
import { EXCHANGED_TOKEN_KNOWN_MS } from '../../projections/access-tokens/table.ts';
import { prunableBucketErrors } from '../../projections/bucket-errors/pruned.ts';
import { BUCKET_ERROR_LISTED_MS } from '../../projections/bucket-errors/table.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { removePrunedRows } from '../../projections/runner/pruned-rows.ts';
import { prunableMinutes } from '../../projections/usage-ledger/pruned.ts';
import { withoutStreams } from '../support/pruned-log.ts';
import { newDatabase } from '../support/read-model-database.ts';
import { Appender, createMemoryEventStore, newUuid, startRunner } from '../support/read-models.ts';

async function serve(context: TestContext) {
  const pruned = new Set<StreamName>();
  const store = createMemoryEventStore();
  const events = withoutStreams(store, pruned);
  const append = new Appender(store);
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
  return { append, current, assertSameAfterRebuild, database, events, pruned };
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

describe('Streams that were pruned from the log', () => {
  test('leave no row of theirs, and all other rows as a rebuild finds them', async (context) => {
    const { append, current, assertSameAfterRebuild, database, events, pruned } = await serve(context);
    const clean = async (): Promise<void> => {
      const signal = { aborted: false };
      await removePrunedRows({ database, events }, prunableBucketErrors, append.now, signal);
      await removePrunedRows({ database, events }, prunableMinutes, append.now, signal);
    };
    const account = await append.account('ada');
    const [bucket, token, repository] = [newUuid<StorageBucketId>(), newUuid<AccessTokenId>(), newUuid<RepositoryId>()];
    const failVerification = () =>
      append.append(streamName('account', account), account, 'StorageBucketVerificationFailed', {
        ...{ bucket_id: bucket, step: 'put', code: 'unreachable' },
      });
    await failVerification();
    const errors = streamName('bucketErrors', `${bucket}-20261121`);
    const failOn = (stream: StreamName) =>
      append.append(stream, account, 'BucketErrorRecorded', {
        ...{ bucket_id: bucket, repository_id: null, operation: 'push', code: 'unreachable' },
      });
    for (let n = 0; n <= BUCKET_ERRORS_LISTED_MAX; n += 1) await failOn(errors);
    const day = (date: string, node: string) => streamName('transfer', `${account}-${node}-${date}`);
    const sum = {
      reader: { kind: 'token', id: token },
      repository_id: repository,
      reads: 1,
      sent_bytes: 5,
      received_bytes: 0,
    };
    const read = (stream: StreamName) =>
      append.append(stream, account, 'TransferRecorded', {
        ...{ minute: append.now, sent_bytes: 5, received_bytes: 0, by_reader: [sum], refused_reads: [] },
      });
    for (const node of ['a', 'b', 'a']) await read(day('20261121', node));
    const by_reader = [{ ...sum, reads: 3, sent_bytes: 15 }];
    const days = [{ day: append.now.slice(0, 10), sent_bytes: 15, received_bytes: 0, by_reader }];
    await append.append(streamName('usage', account), account, 'UsageRecorded', {
      ...{ day: append.now.slice(0, 10), through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
      transfer: days,
    });
    append.now = plusMs(append.now, 24 * 60 * 60_000);
    await failOn(streamName('bucketErrors', `${bucket}-20261122`));
    await read(day('20261122', 'a'));
    const reads = await current();
    await reads.usageLedgerCaughtUp(append.last);
    const page = { after: null, limit: 10, minutesFrom: append.now.slice(0, 10) };
    const seen = await reads.usageLedger(account, '2026-11', page);
    const usesLeft = async () => (await reads.tokenUses(account, token, { after: null, limit: 10 })).uses.length;
    const listed = async () =>
      (await reads.bucketErrors({ account, buckets: [bucket], repositories: null }, { offset: 0, limit: 5 })).total;
    assert.deepEqual([await listed(), await usesLeft()], [BUCKET_ERRORS_LISTED_MAX + 1, 2]);
    await clean();
    assert.deepEqual([await listed(), await usesLeft()], [BUCKET_ERRORS_LISTED_MAX + 1, 2], 'nothing was pruned yet');
    for (const stream of [errors, day('20261121', 'a'), day('20261121', 'b')]) pruned.add(stream);
    await clean();
    assert.deepEqual([await listed(), await usesLeft()], [2, 1]);
    assert.deepEqual(await reads.usageLedger(account, '2026-11', page), seen);
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
