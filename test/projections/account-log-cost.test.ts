/** What one more entry costs the model of accounts' logs, on a real PostgreSQL. */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { leafHash, rangeHash, subtreesOf } from '../../core/audit/tree.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { Hash } from '../../core/ports/account-log.ts';
import { createAccountLogProjection } from '../../projections/account-log/apply.ts';
import { accountLogTables, NODE_LEVEL_MIN } from '../../projections/account-log/table.ts';
import type { Statement } from '../../projections/runner/projection.ts';
import { newAccount, placedEvents } from '../support/events.ts';
import { newDatabase } from '../support/read-model-database.ts';

/** An entry behind the second and the third completes ten and fifteen subtrees, and so costs most; the first, none. */
const SIZES = [1_000, 1_023, 98_303];

interface Cost {
  readonly hashes: number;
  readonly rowsRead: number;
  readonly rowsWritten: number;
  readonly bytesWritten: number;
  /** Pages of 8 KiB that PostgreSQL touched. */
  readonly pages: number;
}

const table = (name: string): string => name;

/** Fills the tables as `size` entries leave them; all leaves are the same, so that a subtree's hash is its level's. */
async function fill(pool: pg.Pool, account: AccountId, size: number): Promise<void> {
  const levels: Hash[] = [leafHash(digest, 'leaf')];
  for (let level = 1; 2 ** level <= size; level += 1) {
    const below = levels[level - 1];
    assert.ok(below !== undefined);
    levels.push(rangeHash(digest, [below, below]));
  }
  await pool.query(
    `INSERT INTO account_log_entries SELECT $1, n, n + 1, gen_random_uuid(), 'repository-' || ($1::uuid)::text, 0,
       'RefsUpdated', 'actor', 'request', '2026-11-21T10:00:00.000Z', decode($2, 'hex'), 500 FROM generate_series(0, $3 - 1) AS n`,
    [account, levels[0], size],
  );
  for (let level = NODE_LEVEL_MIN; level < levels.length; level += 1) {
    await pool.query(
      `INSERT INTO account_log_nodes SELECT $1, $2, n, decode($3, 'hex') FROM generate_series(0, $4 - 1) AS n`,
      [account, level, levels[level], Math.floor(size / 2 ** level)],
    );
  }
  const head = subtreesOf({ begin: 0, end: size }).map(({ level }) => levels[level]);
  await pool.query(`INSERT INTO account_log_heads VALUES ($1, $2, $2, '2026-11-21T10:00:00.000Z', decode($3, 'hex'))`, [
    account,
    size,
    head.join(''),
  ]);
  await pool.query('ANALYZE');
}

/** Appends one entry to a log of this many. */
async function costAt(pool: pg.Pool, size: number): Promise<Cost> {
  for (const { name } of accountLogTables) await pool.query(`TRUNCATE ${name}`);
  const account = newAccount();
  await fill(pool, account, size);
  let hashes = 0;
  const counting: Digest = {
    ...digest,
    sha256: (text) => ((hashes += 1), digest.sha256(text)),
    sha256OfBytes: (bytes) => ((hashes += 1), digest.sha256OfBytes(bytes)),
  };
  let [rowsRead, pages] = [0, 0];
  const explained = async ({ text, values = [] }: Statement): Promise<void> => {
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values]);
    const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
    pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  };
  const reading = {
    query: async (statement: Statement) => {
      await explained(statement);
      const answer = await pool.query(statement.text, [...(statement.values ?? [])]);
      rowsRead += answer.rows.length;
      return answer;
    },
  };
  const [event] = placedEvents(1);
  assert.ok(event !== undefined);
  const applier = createAccountLogProjection(counting).open(table);
  const { lists } = await applier.prepare([{ ...event, accountId: account }], reading, { patient: false });
  for (const { text, items } of lists) {
    if (items.length > 0) await explained({ text, values: [JSON.stringify(items)] });
  }
  const { rows } = await pool.query('SELECT size FROM account_log_heads');
  assert.equal(Number(rows[0].size), size + 1, 'the entry was written');
  const rowsWritten = lists.reduce((sum, { items }) => sum + items.length, 0);
  const bytesWritten = JSON.stringify(lists.map(({ items }) => items)).length;
  return { hashes, rowsRead, rowsWritten, bytesWritten, pages };
}

test('one more entry costs hashes, rows and pages by the logarithm of the log, and not by its length', async (context) => {
  const pool = await newDatabase(context);
  for (const { name, create } of accountLogTables) for (const text of create(name)) await pool.query(text);
  const costs: string[] = [];
  for (const size of SIZES) {
    const cost = await costAt(pool, size);
    costs.push(`${size}: ${JSON.stringify(cost)}`);
    const levels = Math.ceil(Math.log2(size + 1));
    const said = costs.join('\n');
    assert.equal(cost.rowsRead, 1, said);
    assert.ok(cost.hashes <= 1 + levels, said);
    // Its own row, its repository's and the head's, and one for each larger subtree that it completes.
    assert.ok(cost.rowsWritten <= 3 + Math.max(0, levels - NODE_LEVEL_MIN + 1), said);
    assert.ok(cost.bytesWritten <= 1_000 + 250 * levels, said);
    // Each row's page, and the way down each of the indexes, whose depth is a logarithm to a large base.
    assert.ok(cost.pages <= 60 + 6 * levels, said);
  }
});
