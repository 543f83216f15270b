/** The changes of accounts, however their events are split into batches, and what reading them costs. */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { test } from 'vitest';
import { LOG_START } from '../../core/kernel/envelope.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import { changesProjection } from '../../projections/changes/apply.ts';
import { CHANGE_REQUEST_KNOWN_MS } from '../../projections/changes/limits.ts';
import { executeWrite } from '../../projections/runner/bulk.ts';
import { newDatabase } from '../support/read-model-database.ts';
import { Appender, createMemoryEventStore } from '../support/read-models.ts';

const MINUTE_MS = 60_000;

async function applied(pool: pg.Pool, append: Appender, generation: string, batchLength: number) {
  const table = (name: string): string => `${name}_${generation}`;
  for (const { name, create } of changesProjection.tables)
    for (const text of create(table(name))) await pool.query(text);
  const events = await append.store.readAll(LOG_START, 10_000);
  const applier = changesProjection.open(table);
  for (let from = 0; from < events.length; from += batchLength) {
    const write = await applier.prepare(events.slice(from, from + batchLength), pool, { patient: false });
    await executeWrite(pool, write);
    write.committed?.();
  }
  const { rows: months } = await pool.query(`SELECT month, changes FROM ${table('changes_months')} ORDER BY month`);
  const { rows: requests } = await pool.query(`SELECT at FROM ${table('changes_requests')} ORDER BY at`);
  return { months, requests };
}

test('are the same in batches of any length, and requests are forgotten after two hours of events', async (context) => {
  const pool = await newDatabase(context);
  const append = new Appender(createMemoryEventStore());
  const account = await append.account('ada');
  append.actor = { kind: 'user', id: account };
  append.requestId = 'request-0';
  const repository = await append.repository(account, 'made');
  const start = append.now;
  for (let n = 0; n < 300; n += 1) {
    append.now = plusMs(start, n * MINUTE_MS);
    append.requestId = `request-${n}`;
    await append.push(account, repository);
    // The events of a request that others come between.
    append.requestId = `request-${Math.max(0, n - 3)}`;
    await append.push(account, repository);
  }
  const whole = await applied(pool, append, 'whole', 10_000);
  assert.deepEqual(whole.months, [{ month: '2026-11', changes: '300' }]);
  for (const length of [1, 2, 7]) {
    const some = await applied(pool, append, `batches_${length}`, length);
    assert.deepEqual(some.months, whole.months, `batches of ${length}`);
    const kept = CHANGE_REQUEST_KNOWN_MS / MINUTE_MS;
    assert.ok(some.requests.length <= kept + 3, `${some.requests.length} requests are kept`);
  }
});
