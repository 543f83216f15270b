/** What `strata-admin` knows of repositories that were deleted and came back. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { listStorage } from '../../../apps/admin/storage.ts';
import { verifyLog } from '../../../apps/admin/verify-log.ts';
import { createLogger } from '../../../apps/server/logger.ts';
import type { RecordedEvent } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { readKnownRepositories, readRepositoriesOf } from '../../../core/use-cases/repositories/known-repositories.ts';
import { changeRepository, closeRepository, releaseName } from '../../../core/use-cases/repositories/repositories.ts';
import { undeleteRepository } from '../../../core/use-cases/undo/undelete-repository.ts';
import { newAccount, newRepository } from '../../support/accounts.ts';
import { seesDeletions } from '../../support/deletions.ts';
import { type GitReading, startGitReading } from '../../support/git-reading.ts';
import { layersIn } from '../../support/layers-in.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { CAUSE, startNode } from '../../support/node.ts';

const BUCKET = randomUUID();
const log = createLogger('silent', null);

/** The log as it would be if the repository had been made in a bucket. */
function inBucket(events: EventStore): EventStore {
  const moved = (page: readonly RecordedEvent[]): readonly RecordedEvent[] =>
    page.map((event) =>
      event.type === 'RepositoryCreated' || event.type === 'RepositoryRestored'
        ? { ...event, data: { ...event.data, storage_bucket_id: BUCKET } }
        : event,
    );
  return {
    ...events,
    readAll: async (after, limit) => moved(await events.readAll(after, limit)),
    readStream: async (stream, options) => moved(await events.readStream(stream, options)),
  };
}

describe('A repository that was renamed', () => {
  test('has its new name, by the whole log and by its account', async () => {
    const node = await startNode(createMemoryEventStore());
    const account = await newAccount(node, 'ada');
    const { id } = await newRepository(node, account, 'tools');
    const rename = { name: 'kit', takesFormerNames: true };
    const renamed = await changeRepository(node, { account, cause: CAUSE }, id, { rename });
    assert.ok(!('refused' in renamed));
    const all = [...(await readKnownRepositories(node.events)).values()];
    assert.deepEqual(
      all.map(({ name, deleted }) => [name, deleted]),
      [['ada/kit', false]],
    );
    assert.deepEqual([...(await readRepositoriesOf(node.events, account)).values()], all);
  });
});

describe('A repository that was deleted and came back under another name', () => {
  let reading: GitReading;
  let events: EventStore;

  beforeAll(async () => {
    reading = await startGitReading();
    const { id } = await reading.push({ 'refs/heads/main': reading.git.commit({ first: randomBytes(300) }) });
    const { node, account } = reading;
    await closeRepository(node, { account, cause: CAUSE }, id);
    await releaseName(node, { account, cause: CAUSE }, id);
    const back = await undeleteRepository(seesDeletions(node), { account, cause: CAUSE }, { id, name: 'back' });
    assert.ok(!('refused' in back));
    events = inBucket(node.events);
  });
  afterAll(() => reading.close());

  const context = () => ({ ...reading.node, events, layers: layersIn(reading.database.layers), digest, log });

  test('is not deleted, neither by the whole log nor by its account', async () => {
    const all = [...(await readKnownRepositories(events)).values()];
    const place = { account: reading.account, storageBucketId: BUCKET };
    const { id } = await reading.current();
    assert.deepEqual(all, [{ id, name: 'ada/back', deleted: false, bucketMoved: false, place }]);
    assert.deepEqual([...(await readRepositoriesOf(events, reading.account)).values()], all);
  });

  test('is listed with its layers', async () => {
    const listed = (await listStorage(context())).find(({ storage_bucket_id: bucket }) => bucket === BUCKET);
    assert.deepEqual([listed?.repository, listed?.deleted, listed?.layers], ['ada/back', false, 1]);
  });

  test('has the layers that `log verify --references` reads, though they are in a bucket', async () => {
    const verified = async () => (await verifyLog({ ...context(), accountLogs: null }, { references: true })).faults;
    assert.deepEqual(await verified(), []);
    const { entity } = await reading.current();
    const [layer] = entity.state.layers;
    await reading.database.layers.delete((layer ?? assert.fail('no layer')).key);
    const [fault, ...more] = await verified();
    assert.match(fault ?? '', /names the layer .*, which is not there/);
    assert.deepEqual(more, []);
  });
});
