/** The contract of challenges on PostgreSQL, and what its table holds. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createPostgresPasskeyChallenges } from '../../adapters/postgres/passkey-challenges.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { plusMs, timestamp } from '../../core/kernel/ids.ts';
import { PASSKEY_CHALLENGES_MAX } from '../../core/kernel/limits.ts';
import { PasskeyChallengesError } from '../../core/ports/passkey-challenges.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { newAccount } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { passkeyChallengesContract } from './passkey-challenges.ts';

async function openPool(context: Ending) {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return pool;
}

passkeyChallengesContract('PostgreSQL', async (context) => createPostgresPasskeyChallenges(await openPool(context)));

// The attack: 100 pages are loaded at the same time, so that each counts the rows before the others are written.
test('the table of challenges holds no more rows than the limit if they are put concurrently, and none that expired', async (context) => {
  const pool = await openPool(context);
  const challenges = createPostgresPasskeyChallenges(pool);
  const now = timestamp('2026-11-21T10:00:00.000Z');
  const account = newAccount();
  const puts = Array.from({ length: 100 }, (_, n) =>
    challenges.put({ account, purpose: 'sign-in', challenge: String(n) }, { now, expiresAt: plusMs(now, 60_000) }),
  );
  await Promise.all(puts);
  const rows = async () => (await pool.query('SELECT FROM passkey_challenges')).rowCount;
  assert.ok(Number(await rows()) <= PASSKEY_CHALLENGES_MAX);
  const later = { now: plusMs(now, 60_001), expiresAt: plusMs(now, 120_000) };
  await challenges.put({ account: newAccount(), purpose: 'sign-in', challenge: 'later' }, later);
  assert.equal(await rows(), 1);
});

test('challenges that cannot be reached are an outage', async (context) => {
  const pool = createPool({ connectionString: 'postgres://localhost:1/none', log: keepLog() });
  cleanUp(context, () => pool.end());
  const challenge = { account: newAccount(), purpose: 'sign-in', challenge: 'one' };
  const taken = createPostgresPasskeyChallenges(pool).take(challenge, timestamp('2026-11-21T10:00:00.000Z'));
  await assert.rejects(taken, PasskeyChallengesError);
});
