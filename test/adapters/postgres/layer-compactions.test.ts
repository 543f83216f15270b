/** The repositories that are to be compacted, on PostgreSQL. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { createPostgresLayerCompactions } from '../../../adapters/postgres/layer-compactions.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { type AccountId, type RepositoryId, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { testDatabase } from '../../support/postgres.ts';

const [EARLY, LATE] = [timestamp('2026-11-21T10:00:00.000Z'), timestamp('2026-11-21T11:00:00.000Z')];

async function open(context: TestContext) {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return createPostgresLayerCompactions(pool);
}

function newRepository() {
  return { account: uuid<AccountId>(randomUUID()), repository: uuid<RepositoryId>(randomUUID()) };
}

describe('A wanted compaction', () => {
  test('is one row, due at the earliest time for which it was asked', async (context) => {
    const compactions = await open(context);
    const [first, second] = [newRepository(), newRepository()];
    await compactions.want(first, LATE);
    await compactions.want(second, LATE);
    await compactions.want(first, EARLY);
    await compactions.want(second, LATE);
    assert.deepEqual(
      (await compactions.earliest(10)).map(({ id, step, dueAt }) => [id, step, dueAt]),
      [
        [first.repository, 'compact', EARLY],
        [second.repository, 'compact', LATE],
      ],
    );
    assert.deepEqual(await compactions.find(first.repository), first);
    assert.deepEqual(await compactions.overdue(EARLY), { count: 1, oldestAt: EARLY });
  });

  test('stays if it was asked for again while it was carried out', async (context) => {
    const compactions = await open(context);
    const wanted = newRepository();
    await compactions.want(wanted, EARLY);
    const before = await compactions.waitOf(wanted.repository);
    await compactions.want(wanted, LATE);
    await compactions.done(wanted.repository, before?.revision ?? -1);
    const after = await compactions.waitOf(wanted.repository);
    assert.equal(after?.dueAt, EARLY);
    await compactions.done(wanted.repository, after?.revision ?? -1);
    assert.equal(await compactions.find(wanted.repository), null);
  });

  test('is told to an engine once, and again after it was asked for again', async (context) => {
    const compactions = await open(context);
    const wanted = newRepository();
    await compactions.want(wanted, LATE);
    const idsUntold = async () => (await compactions.untold('engine', 10)).map(({ id }) => id);
    assert.deepEqual(await idsUntold(), [wanted.repository]);
    await compactions.markTold('engine', [wanted.repository]);
    assert.deepEqual(await idsUntold(), []);
    await compactions.want(wanted, EARLY);
    assert.deepEqual(await idsUntold(), [wanted.repository]);
  });
});
