/** Leads on PostgreSQL: how a node takes, keeps and loses one. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createTakeLead } from '../../../adapters/postgres/lead.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { aborted } from '../../../core/kernel/aborted.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { until } from '../../support/read-models.ts';
import { openDatabase } from './open-store.ts';

const NAME = 'strata.lead.something';
/** Longer than PostgreSQL lets a leader's session be idle. */
const LONGER_THAN_IDLE_MS = 4_000;

/** Two nodes on one database. */
async function twoNodes(context: Ending) {
  const connectionString = await openDatabase(context);
  const pools = [1, 2].map(() => createPool({ connectionString, log: keepLog() }));
  cleanUp(context, () => Promise.all(pools.map((pool) => pool.end())));
  const [one, other] = pools;
  if (one === undefined || other === undefined) throw new TypeError('No pools');
  const take = async () => {
    const held = await createTakeLead(one)(NAME);
    if (held === null) throw new TypeError('Another node leads');
    cleanUp(context, held.release);
    return held;
  };
  return { pool: other, take, takeOther: createTakeLead(other) };
}

describe('A lead', () => {
  test('belongs to one node at a time, and is free for another as soon as it is released', async (context) => {
    const { take, takeOther } = await twoNodes(context);
    const held = await take();
    assert.equal(await takeOther(NAME), null);
    const another = await takeOther('strata.lead.another');
    assert.notEqual(another, null);
    another?.release();
    held.release();
    held.release();
    await until(async () => {
      const next = await takeOther(NAME);
      next?.release();
      return next !== null;
    });
  });

  test('is lost with its connection, and reports the reason', async (context) => {
    const { take, pool } = await twoNodes(context);
    const held = await take();
    assert.equal(held.lost.aborted, false);
    const { rows } = await held.connection.query({ text: 'SELECT pg_backend_pid() AS pid' });
    await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.['pid']]);
    await aborted(held.lost);
    assert.ok(held.lost.reason instanceof Error);
    await assert.rejects(held.connection.query({ text: 'SELECT 1' }));
  });

  test('outlasts work that sends no statement for long, also within a failed transaction', async (context) => {
    const { take, takeOther } = await twoNodes(context);
    const { connection, lost } = await take();
    await connection.query({ text: 'BEGIN' });
    await assert.rejects(connection.query({ text: 'SELECT 1 / 0' }));
    await sleep(LONGER_THAN_IDLE_MS);
    assert.equal(lost.aborted, false);
    await connection.query({ text: 'ROLLBACK' });
    assert.equal(await takeOther(NAME), null);
  });

  test('sends the statements of concurrent callers one after another', async (context) => {
    const { take } = await twoNodes(context);
    const { connection } = await take();
    const results = Array.from({ length: 5 }, (_, n) => connection.query({ text: 'SELECT $1::int AS n', values: [n] }));
    const answers = await Promise.all(results);
    assert.deepEqual(
      answers.map(({ rows }) => rows[0]?.['n']),
      [0, 1, 2, 3, 4],
    );
  });
});
