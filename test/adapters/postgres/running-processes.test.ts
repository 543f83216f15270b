/** The list of running processes on a real PostgreSQL: who is on it, and for how long. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresRunningProcesses } from '../../../adapters/postgres/running-processes.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { openDatabase } from './open-store.ts';

const OLDER = { events: { Sampled: 1 }, models: { samples: 3 } };
const NEWER = { events: { Sampled: 2 }, models: { samples: 4 } };

async function openProcesses(context: Ending) {
  const pool = createPool({ connectionString: await openDatabase(context), log: keepLog() });
  cleanUp(context, () => pool.end());
  return { pool, processes: createPostgresRunningProcesses(pool) };
}

describe('The list of running processes', () => {
  test('says what each process reads, in its last words, until the process ends', async (context) => {
    const { processes } = await openProcesses(context);
    const [first, second] = [randomUUID(), randomUUID()];
    assert.deepEqual(await processes.list(), []);
    await processes.keep(first, { ...OLDER, models: {} });
    await processes.keep(first, OLDER);
    assert.deepEqual(await processes.list(), [OLDER]);
    await processes.keep(second, NEWER);
    await processes.remove(first);
    assert.deepEqual(await processes.list(), [NEWER]);
    await processes.remove(second);
    await processes.remove(second);
    assert.deepEqual(await processes.list(), []);
  });

  test('names a process that is not kept any more for ten minutes, and drops it after that', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const [gone, living] = [randomUUID(), randomUUID()];
    await processes.keep(gone, OLDER);
    const lastKept = (ago: string) =>
      pool.query(`UPDATE running_processes SET kept_at = now() - $2::interval WHERE id = $1`, [gone, ago]);
    await lastKept('9 minutes 50 seconds');
    await processes.keep(living, NEWER);
    assert.equal((await processes.list()).length, 2);
    await lastKept('10 minutes');
    assert.deepEqual(await processes.list(), [NEWER]);
    await processes.keep(living, NEWER);
    assert.deepEqual((await pool.query('SELECT id FROM running_processes')).rows, [{ id: living }]);
    // It was frozen, and continues.
    await processes.keep(gone, OLDER);
    assert.equal((await processes.list()).length, 2);
  });
});
