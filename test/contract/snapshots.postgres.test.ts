/** The snapshots' contract on PostgreSQL, and how long large ones keep the event loop. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import { newStream } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { type OpenSnapshots, snapshotsContract } from './snapshots.ts';

/** A number that holds up nobody: a part of refs is read in half a millisecond. */
const PARTS_MAX = 8;

async function open(): Promise<OpenSnapshots> {
  const database = await testDatabase();
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  return {
    snapshots: createPostgresSnapshots(pool),
    close: async () => {
      await pool.end();
      await database.close();
    },
  };
}

snapshotsContract('PostgreSQL', open);

/** The most calls of `count` in one turn of the event loop. */
function countTurns() {
  const counts = { calls: 0, most: 0 };
  let counting = true;
  const turn = (): void => {
    counts.calls = 0;
    if (counting) setImmediate(turn);
  };
  turn();
  const count = (): void => {
    counts.calls += 1;
    counts.most = Math.max(counts.most, counts.calls);
  };
  return { counts, count, stop: () => void (counting = false) };
}

describe('A snapshot of many parts on PostgreSQL', () => {
  test('leaves the event loop to others between a few parts, saved and read', async () => {
    const { snapshots, close } = await open();
    const { counts, count, stop } = countTurns();
    try {
      const stream = newStream();
      const parts = (function* () {
        for (let number = 0; number < 400; number += 1) {
          count();
          yield { number, text: 'x'.repeat(1_000) };
        }
      })();
      await snapshots.save({ stream, revision: 999, codeVersion: 1, state: null, parts });
      assert.ok(counts.most <= PARTS_MAX, `${counts.most} were made in one turn`);
      counts.most = 0;
      let read = 0;
      for await (const _part of (await snapshots.latest(stream, 1))?.parts ?? []) {
        read += 1;
        count();
      }
      assert.equal(read, 400);
      assert.ok(counts.most <= PARTS_MAX, `${counts.most} were read in one turn`);
    } finally {
      stop();
      await close();
    }
  });
});
