/** Migrating databases to the current schema, also by several servers at the same time. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { describe, test } from 'vitest';
import {
  logMigrations,
  type MigrationKind,
  type MigrationSet,
  migrate,
  NewerDatabaseError,
} from '../../../adapters/postgres/migrate.ts';
import { createPostgresNotifiedPushes } from '../../../adapters/postgres/notified-pushes.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { uuid } from '../../../core/kernel/ids.ts';
import { createRunnerTables, tablesExist } from '../../../projections/runner/tables.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { emptyDatabase, openClient, openStore } from './open-store.ts';

/** The migrations of a newer version: those of this one, and more that change nothing. */
function laterSet(later: Readonly<Record<string, MigrationKind>>): MigrationSet {
  const added = Object.entries(later).map(([name, kind]) => [name, { kind, up: async () => {} }] as const);
  return { name: logMigrations.name, migrations: { ...logMigrations.migrations, ...Object.fromEntries(added) } };
}

async function pauseIn(db: Kysely<unknown>): Promise<void> {
  await sql`SELECT pg_sleep(0.5)`.execute(db);
}

describe('migrating', () => {
  test('by several servers at the same time applies each migration once', async (context) => {
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

  test('starts at a database with later migrations that let older programs run', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({
      connectionString,
      log: keepLog(),
      set: laterSet({ '998-later': 'expand', '999-later': 'expand' }),
    });
    const log = keepLog();
    const migrated = await migrate({ connectionString, log });
    assert.deepEqual(migrated, { isNew: false, later: ['998-later', '999-later'] });
    assert.deepEqual(log.lines, [
      {
        level: 'info',
        message: 'A newer version has migrated the database: this one may run beside it',
        fields: { migrations: ['998-later', '999-later'] },
      },
    ]);
  });

  test('refuses a database with a later migration that lets no older program run', async (context) => {
    const connectionString = await emptyDatabase(context);
    const set = laterSet({ '997-later': 'expand', '998-later': 'contract', '999-later': 'expand' });
    await migrate({ connectionString, log: keepLog(), set });
    await assert.rejects(migrate({ connectionString, log: keepLog() }), (error) => {
      assert.ok(error instanceof NewerDatabaseError);
      assert.match(error.message, /made by a newer version.*: 998-later\./);
      return true;
    });
  });

  test('refuses a database with a later migration that lacks the mark', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog(), set: laterSet({ '999-later': 'expand' }) });
    const client = await openClient(context, connectionString);
    await client.query(`DELETE FROM log_migration_kinds WHERE name = '999-later'`);
    await assert.rejects(migrate({ connectionString, log: keepLog() }), NewerDatabaseError);
  });

  test('lets no program that does not ask for the written versions of events run beside one that chooses them', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog() });
    const before = Object.entries(logMigrations.migrations).filter(([name]) => name < '036');
    const set = { name: logMigrations.name, migrations: Object.fromEntries(before) };
    await assert.rejects(migrate({ connectionString, log: keepLog(), set }), NewerDatabaseError);
  });

  test('marks each later migration together with what it changes', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog() });
    const failing: MigrationSet = {
      name: logMigrations.name,
      migrations: {
        ...laterSet({ '998-later': 'expand' }).migrations,
        '999-fails': { kind: 'contract', up: () => Promise.reject(new Error('half way')) },
      },
    };
    await assert.rejects(migrate({ connectionString, log: keepLog(), set: failing }), /half way/);
    const client = await openClient(context, connectionString);
    const kinds = `SELECT name, kind FROM log_migration_kinds WHERE name > '900' ORDER BY name`;
    assert.deepEqual((await client.query(kinds)).rows, []);
    const set = laterSet({ '998-later': 'expand', '999-later': 'contract' });
    await migrate({ connectionString, log: keepLog(), set });
    assert.deepEqual((await client.query(kinds)).rows, [
      { name: '998-later', kind: 'expand' },
      { name: '999-later', kind: 'contract' },
    ]);
  });

  test('starts beside a newer version that migrates at the same time', async (context) => {
    const connectionString = await emptyDatabase(context);
    await migrate({ connectionString, log: keepLog() });
    const set = laterSet({ '999-later': 'expand' });
    const slow = {
      ...set.migrations,
      '999-later': { kind: 'expand', up: (db: Kysely<unknown>) => pauseIn(db) },
    } as const;
    const newer = migrate({ connectionString, log: keepLog(), set: { ...set, migrations: slow } });
    const olders = Array.from({ length: 4 }, () => migrate({ connectionString, log: keepLog() }));
    await Promise.all([newer, ...olders]);
  });

  test('drops the read model of device logins that an older version kept', async (context) => {
    const connectionString = await emptyDatabase(context);
    const older = Object.entries(logMigrations.migrations).filter(([name]) => name < '011');
    await migrate({ connectionString, log: keepLog(), set: { name: 'log', migrations: Object.fromEntries(older) } });
    const client = await openClient(context, connectionString);
    await createRunnerTables(client);
    const tables = ['device_sessions', 'timers'].map((name) => `read_models.${name}_v1_1`);
    for (const table of tables) {
      await client.query(`CREATE TABLE ${table} (n int)`);
      const name = table.slice('read_models.'.length, -'_v1_1'.length);
      await client.query(`INSERT INTO read_models.projections VALUES ($1, 1, 1, 1)`, [name]);
      const checkpoint = 'INSERT INTO read_models.checkpoints (name, version, generation, tables, position)';
      await client.query(`${checkpoint} VALUES ($1, 1, 1, $2, 0)`, [name, [table]]);
    }
    await migrate({ connectionString, log: keepLog() });
    assert.equal(await tablesExist(client, [tables[0] ?? '']), false);
    assert.equal(await tablesExist(client, [tables[1] ?? '']), true);
    const { rows } = await client.query(
      'SELECT name FROM read_models.projections JOIN read_models.checkpoints USING (name)',
    );
    assert.deepEqual(rows, [{ name: 'timers' }]);
  });

  test('lets purges go by how far an older version had notified webhooks, until the policy starts', async (context) => {
    const connectionString = await emptyDatabase(context);
    const older = Object.entries(logMigrations.migrations).filter(([name]) => name < '028');
    await migrate({ connectionString, log: keepLog(), set: { name: 'log', migrations: Object.fromEntries(older) } });
    const client = await openClient(context, connectionString);
    await client.query(
      `INSERT INTO policy_marks (policy, position, stream, revision, event_id)
       VALUES ('webhook-notifications', 42, 'account-a', 1, gen_random_uuid()), ('another', 77, 'account-a', 1, gen_random_uuid())`,
    );
    await migrate({ connectionString, log: keepLog() });
    const pool = createPool({ connectionString, log: keepLog() });
    cleanUp(context, () => pool.end());
    assert.equal(await createPostgresNotifiedPushes(pool).reachedFor(uuid(randomUUID())), 42n);
  });

  test('keeps different sets of migrations apart, and rolls back a migration that fails', async (context) => {
    const connectionString = await emptyDatabase(context);
    const up = async (db: Kysely<unknown>) => {
      await sql`CREATE TABLE of_another_part (n int)`.execute(db);
    };
    await migrate({ connectionString, log: keepLog() });
    await migrate({
      connectionString,
      log: keepLog(),
      set: { name: 'other', migrations: { '001-table': { kind: 'expand', up } } },
    });
    const failing = async (db: Kysely<unknown>) => {
      await sql`DROP TABLE of_another_part`.execute(db);
      throw new Error('half way');
    };
    const set: MigrationSet = {
      name: 'other',
      migrations: { '001-table': { kind: 'expand', up }, '002-fails': { kind: 'expand', up: failing } },
    };
    await assert.rejects(migrate({ connectionString, log: keepLog(), set }), /half way/);
    const client = await openClient(context, connectionString);
    assert.deepEqual((await client.query('SELECT * FROM of_another_part')).rows, []);
  });
});
