/** What the usage costs that every push of an account with quotas reads, on a real PostgreSQL. */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { test } from 'vitest';
import { LOG_START } from '../../core/kernel/envelope.ts';
import { usageProjection } from '../../projections/usage/apply.ts';
import { usageQuery } from '../../projections/usage/queries.ts';
import { usageTables } from '../../projections/usage/table.ts';
import { newDatabase } from '../support/read-model-database.ts';
import { Appender, createMemoryEventStore, layer } from '../support/read-models.ts';

const LAYER_BYTES = 10;
const EVENTS_MAX = 10_000;

const table = (name: string): string => name;

/** Makes an account with this many repositories, each with a push; returns the pages that reading its usage touches. */
async function pagesFor(pool: pg.Pool, repositories: number): Promise<number> {
  const append = new Appender(createMemoryEventStore());
  const account = await append.account('ada');
  for (let n = 0; n < repositories; n += 1) {
    const id = await append.repository(account, `project-${n}`);
    await append.push(account, id, { layer: layer(LAYER_BYTES) });
  }
  const events = await append.store.readAll(LOG_START, EVENTS_MAX);
  const { lists } = await usageProjection.open(table).prepare(events, pool, { patient: false });
  for (const { text, items } of lists) if (items.length > 0) await pool.query(text, [JSON.stringify(items)]);
  await pool.query('ANALYZE');
  const values = [account, '2026-11'];
  const read = await pool.query({ text: usageQuery.answer(table), values, rowMode: 'array' });
  assert.equal(read.rows[0]?.[0].storageBytes, repositories * LAYER_BYTES);
  const explained = await pool.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${usageQuery.answer(table)}`, values);
  const [{ Plan: plan }] = explained.rows[0]['QUERY PLAN'];
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

test('reading the usage of an account costs the same with 2,000 repositories as with one', async (context) => {
  const pool = await newDatabase(context);
  for (const { name, create } of usageTables) for (const text of create(name)) await pool.query(text);
  const one = await pagesFor(pool, 1);
  const many = await pagesFor(pool, 2_000);
  // A table of more rows may have one more level of an index.
  assert.ok(many <= one + 4, `${one} pages for one, ${many} for 2,000`);
});
