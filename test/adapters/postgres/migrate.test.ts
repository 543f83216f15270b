/** Migrating databases to the current schema, also by several servers at once. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Kysely, sql } from 'kysely';
import { logMigrations, migrate } from '../../../adapters/postgres/migrate.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { emptyDatabase, openClient, openStore } from './open-store.ts';

describe('migrating', () => {
  test('by several servers at once applies each migration once', async (context) => {
    const connectionString = await emptyDatabase(context);
    const logs = Array.from({ length: 4 }, () => keepLog());
    await Promise.all(logs.map((log) => migrate({ connectionString, log })));
    const applied = logs.flatMap((log) => log.lines).filter((line) => line.message === 'Migrated the database');
    assert.equal(applied.length, Object.keys(logMigrations.migrations).length);
    const { store } = openStore(context, connectionString);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await migrate({ connectionString, log: keepLog() });
    assert.equal(await store.head(), 1n);
  });

  test('refuses a database that a newer version has migrated', async (context) => {
    const connectionString = await emptyDatabase(context);
    const newer = {
      name: logMigrations.name,
      migrations: { ...logMigrations.migrations, '999-later': { up: async () => {} } },
    };
    await migrate({ connectionString, log: keepLog(), set: newer });
    await assert.rejects(migrate({ connectionString, log: keepLog() }), /999-later/);
  });

  test('keeps different sets of migrations apart, and rolls back a migration that fails', async (context) => {
    const connectionString = await emptyDatabase(context);
    const up = async (db: Kysely<unknown>) => {
      await sql`CREATE TABLE of_another_part (n int)`.execute(db);
    };
    await migrate({ connectionString, log: keepLog() });
    await migrate({ connectionString, log: keepLog(), set: { name: 'other', migrations: { '001-table': { up } } } });
    const failing = async (db: Kysely<unknown>) => {
      await sql`DROP TABLE of_another_part`.execute(db);
      throw new Error('half way');
    };
    const set = { name: 'other', migrations: { '001-table': { up }, '002-fails': { up: failing } } };
    await assert.rejects(migrate({ connectionString, log: keepLog(), set }), /half way/);
    const client = await openClient(context, connectionString);
    assert.deepEqual((await client.query('SELECT * FROM of_another_part')).rows, []);
  });
});
