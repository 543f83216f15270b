/** Recording the errors of buckets in the background: a hot loop of failures costs few events. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { BUCKET_ERROR_INTERVAL_MS } from '../../../../core/bucket-errors/decide.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { type AccountId, type RepositoryId, type StorageBucketId, uuid } from '../../../../core/kernel/ids.ts';
import type { EventStore } from '../../../../core/ports/event-store.ts';
import {
  BUCKET_ERRORS_AT_ONCE_MAX,
  createBucketErrors,
} from '../../../../core/use-cases/buckets/record-bucket-error.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { startNode } from '../../../support/node.ts';

async function recording() {
  const store = createMemoryEventStore();
  let appends = 0;
  const events: EventStore = {
    ...store,
    append: (wanted) => {
      appends += 1;
      return store.append(wanted);
    },
  };
  const node = await startNode(events);
  const onError = createBucketErrors(node);
  const account = uuid<AccountId>(randomUUID());
  const bucket = uuid<StorageBucketId>(randomUUID());
  const fail = (repository: RepositoryId | null) =>
    onError(account, { bucket, repository, operation: 'push', code: 'unreachable' });
  const recorded = async () => {
    await node.background.settled();
    return (await events.readAll(LOG_START, 1_000)).filter(({ type }) => type === 'BucketErrorRecorded');
  };
  return { node, fail, recorded, account, appends: () => appends };
}

describe('The errors of a bucket', () => {
  test('of a hot loop are one event in an interval, with the cause of the service', async () => {
    const { node, fail, recorded, account, appends } = await recording();
    for (let round = 0; round < 100; round += 1) fail(null);
    await recorded();
    for (let round = 0; round < 100; round += 1) fail(null);
    const [event, ...more] = await recorded();
    assert.deepEqual([more, appends()], [[], 1]);
    assert.deepEqual([event?.actor, event?.accountId], [{ kind: 'system', id: 'bucket-errors' }, account]);
    node.clock.advance(BUCKET_ERROR_INTERVAL_MS);
    fail(null);
    assert.equal((await recorded()).length, 2);
  });

  test('leave room for those of others, however often one fails in between', async () => {
    const { fail, recorded } = await recording();
    for (let round = 0; round < 2 * BUCKET_ERRORS_AT_ONCE_MAX; round += 1) fail(null);
    fail(uuid<RepositoryId>(randomUUID()));
    assert.equal((await recorded()).length, 2);
  });

  test('that a node records at the same time are bounded, whatever fails beside them', async () => {
    const { fail, recorded } = await recording();
    for (let number = 0; number <= BUCKET_ERRORS_AT_ONCE_MAX; number += 1) fail(uuid<RepositoryId>(randomUUID()));
    assert.equal((await recorded()).length, BUCKET_ERRORS_AT_ONCE_MAX);
    fail(uuid<RepositoryId>(randomUUID()));
    assert.equal((await recorded()).length, BUCKET_ERRORS_AT_ONCE_MAX + 1);
  });
});
