/** The list of running processes on a real PostgreSQL: who is on it, for how long, and what is written for them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test, vi } from 'vitest';
import { connectClient, createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresRunningProcesses } from '../../../adapters/postgres/running-processes.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { openDatabase } from './open-store.ts';

const OLDER = { events: { Sampled: 1 }, models: { samples: 3 } };
const NEWER = { events: { Sampled: 2 }, models: { samples: 4 } };
/** Either program can write the first version. */
const OLDEST = { Sampled: 1 };
const LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('strata.written-events', 0))`;

async function openProcesses(context: Ending) {
  const connectionString = await openDatabase(context);
  const pool = createPool({ connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return { connectionString, pool, processes: createPostgresRunningProcesses(pool) };
}

describe('The list of running processes', () => {
  test('says what each process reads, in its last words, until the process ends', async (context) => {
    const { processes } = await openProcesses(context);
    const [first, second] = [randomUUID(), randomUUID()];
    assert.deepEqual(await processes.list(), []);
    await processes.keep(first, { ...OLDER, models: {} }, OLDEST);
    await processes.keep(first, OLDER, OLDEST);
    assert.deepEqual(await processes.list(), [OLDER]);
    await processes.keep(second, NEWER, OLDEST);
    await processes.remove(first);
    assert.deepEqual(await processes.list(), [NEWER]);
    await processes.remove(second);
    await processes.remove(second);
    assert.deepEqual(await processes.list(), []);
  });

  test('names a process that is not kept any more for ten minutes, and drops it after that', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const [gone, living] = [randomUUID(), randomUUID()];
    const frozen = { ...NEWER, models: OLDER.models };
    await processes.keep(gone, frozen, OLDEST);
    const lastKept = (ago: string) =>
      pool.query(`UPDATE running_processes SET kept_at = now() - $2::interval WHERE id = $1`, [gone, ago]);
    await lastKept('9 minutes 50 seconds');
    await processes.keep(living, NEWER, OLDEST);
    assert.equal((await processes.list()).length, 2);
    await lastKept('10 minutes');
    assert.deepEqual(await processes.list(), [NEWER]);
    await processes.keep(living, NEWER, OLDEST);
    assert.deepEqual((await pool.query('SELECT id FROM running_processes')).rows, [{ id: living }]);
    // It was frozen, and continues.
    await processes.keep(gone, frozen, OLDEST);
    assert.equal((await processes.list()).length, 2);
  });
});

describe('The written version of an event', () => {
  test('is the newest one in a new service', async (context) => {
    const { processes } = await openProcesses(context);
    assert.deepEqual(await processes.keep(randomUUID(), OLDER, OLDEST), {});
    const { processes: others } = await openProcesses(context);
    assert.deepEqual(await others.keep(randomUUID(), NEWER, OLDEST), { Sampled: 2 });
  });

  test('stays the older one until every process of the last ten minutes reads the newer one', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const [older, newer] = [randomUUID(), randomUUID()];
    await processes.keep(older, OLDER, OLDEST);
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), {});
    // One that has ended counts too, so that the older version can be started again.
    await processes.remove(older);
    assert.deepEqual(await processes.list(), [NEWER]);
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), {});
    const kept = (ago: string) =>
      pool.query('UPDATE running_processes SET kept_at = now() - $2::interval WHERE id = $1', [older, ago]);
    await kept('9 minutes 50 seconds');
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), {});
    await kept('10 minutes');
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), { Sampled: 2 });
  });

  test('never goes back, and tells an older process that it cannot read', async (context) => {
    const { processes } = await openProcesses(context);
    await processes.keep(randomUUID(), NEWER, OLDEST);
    assert.deepEqual(await processes.keep(randomUUID(), OLDER, OLDEST), { Sampled: 2 });
    const { processes: others } = await openProcesses(context);
    assert.deepEqual((await others.write({ Sampled: 4, Other: 1 }, OLDEST, false)).written, { Sampled: 4 });
    assert.deepEqual((await others.write({ Sampled: 3 }, OLDEST, true)).written, { Sampled: 4 });
    const between = { events: { Sampled: 3 }, models: {} };
    const newest = { events: { Sampled: 5 }, models: {} };
    await others.keep(randomUUID(), { events: { Sampled: 4 }, models: {} }, OLDEST);
    assert.deepEqual(await others.keep(randomUUID(), newest, { Sampled: 2 }), { Sampled: 4 });
    assert.deepEqual(await others.keep(randomUUID(), between, { Sampled: 3 }), { Sampled: 4 });
  });

  test('becomes the newest one by the word of an operator while no older process runs, else by a stronger one', async (context) => {
    const { processes } = await openProcesses(context);
    const [older, newer] = [randomUUID(), randomUUID()];
    await processes.keep(older, OLDER, OLDEST);
    await processes.keep(newer, NEWER, OLDEST);
    const raised = { Sampled: 2 };
    assert.deepEqual(await processes.write(NEWER.events, OLDEST, false), { written: {}, raised, olderProcesses: 1 });
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), {});
    await processes.remove(older);
    const done = { written: raised, raised, olderProcesses: 0 };
    assert.deepEqual(await processes.write(NEWER.events, OLDEST, false), done);
    const nothing = { written: raised, raised: {}, olderProcesses: 0 };
    assert.deepEqual(await processes.write(NEWER.events, OLDEST, false), nothing);
    const { processes: others } = await openProcesses(context);
    await others.keep(older, OLDER, OLDEST);
    assert.deepEqual(await others.write(NEWER.events, OLDEST, true), { ...done, olderProcesses: 1 });
    assert.deepEqual(await others.keep(newer, NEWER, OLDEST), raised);
  });

  test('waits for no process that is refused, however often it is started', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const refused = { events: { Sampled: 1, Other: 1 }, models: {} };
    const both = { events: { Sampled: 2, Other: 2 }, models: {} };
    await processes.write({ Sampled: 2 }, OLDEST, true);
    const oldest = { Sampled: 1, Other: 1 };
    assert.deepEqual(await processes.keep(randomUUID(), refused, oldest), { Sampled: 2 });
    assert.deepEqual((await pool.query('SELECT id FROM running_processes')).rows, []);
    assert.deepEqual(await processes.keep(randomUUID(), both, oldest), { Sampled: 2, Other: 2 });
  });

  test('is decided by the clock of the database, and late where that was set back', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const [older, newer] = [randomUUID(), randomUUID()];
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 24 * 60 * 60_000 });
    cleanUp(context, () => vi.useRealTimers());
    await processes.keep(older, OLDER, OLDEST);
    vi.useRealTimers();
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), {});
    await pool.query(`UPDATE running_processes SET kept_at = now() + interval '1 day' WHERE id = $1`, [older]);
    assert.deepEqual(await processes.keep(newer, NEWER, OLDEST), {});
  });

  test('is at least the oldest one that a process writes, and does not wait for types of no newer version', async (context) => {
    const { processes } = await openProcesses(context);
    await processes.keep(randomUUID(), { events: { Sampled: 1, Plain: 3 }, models: {} }, { Sampled: 1, Plain: 3 });
    const newer = { events: { Sampled: 4, Plain: 3, Fresh: 1 }, models: {} };
    const written = await processes.keep(randomUUID(), newer, { Sampled: 2, Plain: 3, Fresh: 1 });
    assert.deepEqual(written, { Sampled: 2, Plain: 3 });
  });

  test('of a new type waits until every process of the last ten minutes knows it', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const [older, newer] = [randomUUID(), randomUUID()];
    const withNew = { events: { Sampled: 1, Fresh: 1 }, models: {} };
    const oldest = { Sampled: 1, Fresh: 0 };
    await processes.keep(older, OLDER, OLDEST);
    assert.deepEqual(await processes.keep(newer, withNew, oldest), {});
    await processes.remove(older);
    assert.deepEqual(await processes.keep(newer, withNew, oldest), {});
    // The first start of the newer program keeps no older one from starting.
    assert.deepEqual(await processes.keep(older, OLDER, OLDEST), {});
    assert.equal((await processes.list()).length, 2);
    await pool.query(`UPDATE running_processes SET kept_at = now() - interval '10 minutes' WHERE id = $1`, [older]);
    assert.deepEqual(await processes.keep(newer, withNew, oldest), { Fresh: 1 });
    assert.deepEqual(await processes.keep(older, OLDER, OLDEST), { Fresh: 1 });
    assert.deepEqual(await processes.list(), [withNew], 'the older program is refused, and not listed');
    const { processes: others } = await openProcesses(context);
    assert.deepEqual(await others.keep(newer, withNew, oldest), { Fresh: 1 }, 'in a new service');
  });

  test('of a new type becomes its first one by the word of an operator as well', async (context) => {
    const { processes } = await openProcesses(context);
    const [older, newer] = [randomUUID(), randomUUID()];
    const withNew = { events: { Sampled: 1, Fresh: 1 }, models: {} };
    const oldest = { Sampled: 1, Fresh: 0 };
    await processes.keep(older, OLDER, OLDEST);
    await processes.keep(newer, withNew, oldest);
    const raised = { Fresh: 1 };
    assert.deepEqual(await processes.write(withNew.events, oldest, false), { written: {}, raised, olderProcesses: 1 });
    assert.deepEqual(await processes.keep(newer, withNew, oldest), {});
    const done = { written: raised, raised, olderProcesses: 1 };
    assert.deepEqual(await processes.write(withNew.events, oldest, true), done);
    assert.deepEqual(await processes.keep(newer, withNew, oldest), raised);
  });

  test('switches before an older process starts, or after it is listed, and not in between', async (context) => {
    const { connectionString, processes } = await openProcesses(context);
    const switching = await connectClient({ connectionString, log: keepLog() });
    cleanUp(context, () => switching.end());
    await switching.query('BEGIN');
    await switching.query(LOCK);
    await switching.query(`INSERT INTO written_events VALUES ('Sampled', 2)`);
    const older = processes.keep(randomUUID(), OLDER, OLDEST);
    assert.equal(await Promise.race([older, sleep(200, 'waits')]), 'waits');
    await switching.query('COMMIT');
    assert.deepEqual(await older, { Sampled: 2 });

    await switching.query('BEGIN');
    await switching.query(LOCK);
    await switching.query(`INSERT INTO running_processes VALUES ($1, '{"Sampled": 2}', '{}', now())`, [randomUUID()]);
    const newer = processes.keep(randomUUID(), { events: { Sampled: 3 }, models: {} }, OLDEST);
    assert.equal(await Promise.race([newer, sleep(200, 'waits')]), 'waits');
    await switching.query('COMMIT');
    assert.deepEqual(await newer, { Sampled: 2 });

    await switching.query('BEGIN');
    await switching.query(LOCK);
    await switching.query(`INSERT INTO running_processes VALUES ($1, '{"Sampled": 3}', '{}', now())`, [randomUUID()]);
    const finishing = processes.write({ Sampled: 4 }, OLDEST, false);
    assert.equal(await Promise.race([finishing, sleep(200, 'waits')]), 'waits');
    await switching.query('COMMIT');
    assert.deepEqual(await finishing, { written: { Sampled: 2 }, raised: { Sampled: 4 }, olderProcesses: 3 });
  });

  test('leaves one row of the processes that ended and read the same', async (context) => {
    const { pool, processes } = await openProcesses(context);
    const [living, last] = [randomUUID(), randomUUID()];
    await processes.keep(living, NEWER, OLDEST);
    for (const id of [randomUUID(), randomUUID(), last]) {
      await processes.keep(id, NEWER, OLDEST);
      await processes.remove(id);
    }
    const { rows } = await pool.query('SELECT id FROM running_processes ORDER BY ended');
    assert.deepEqual(rows, [{ id: living }, { id: last }]);
  });
});
