/** The role that serves, on a real PostgreSQL: what a thief of the server's connection can do to the log. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { beforeAll, describe, test } from 'vitest';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { prepareDatabase, tooMighty } from '../../adapters/postgres/serving-role.ts';
import { LOG_START, streamName } from '../../core/kernel/envelope.ts';
import { createRunnerTables } from '../../projections/runner/tables.ts';
import { cleanUp, type Ending, suiteEnding } from '../support/cleanup.ts';
import { newEvent, newId, newStream } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { type TestDatabase, testDatabase } from '../support/postgres.ts';

const NOT_ALLOWED = { code: '42501' };

async function connect(ending: Ending, connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  cleanUp(ending, () => client.end());
  return client;
}

async function newDatabase(ending: Ending): Promise<TestDatabase> {
  const database = await testDatabase();
  cleanUp(ending, () => database.close());
  return database;
}

function openLog(ending: Ending, { servingConnectionString: connectionString }: TestDatabase) {
  const store = createPostgresEventStore({ connectionString, log: keepLog() });
  cleanUp(ending, () => store.close());
  return store;
}

/** A role that is removed with the test, and the address of the database for it. */
async function newRole(
  ending: Ending,
  database: TestDatabase,
  attributes = '',
): Promise<{ name: string; url: string }> {
  const owner = await connect(ending, database.connectionString);
  const name = `strata_test_${randomBytes(6).toString('hex')}`;
  await owner.query(`CREATE ROLE ${name} LOGIN PASSWORD 'no-secret' ${attributes}`);
  cleanUp(ending, async () => {
    await owner.query(`REASSIGN OWNED BY ${name} TO CURRENT_USER`);
    await owner.query(`DROP OWNED BY ${name}`);
    await owner.query(`DROP ROLE ${name}`);
  });
  const url = new URL(database.connectionString);
  [url.username, url.password] = [name, 'no-secret'];
  return { name, url: url.href };
}

describe('A thief of the connection that serves', () => {
  const ending = suiteEnding();
  let database: TestDatabase;
  let thief: pg.Client;
  let owner: string;

  beforeAll(async () => {
    database = await newDatabase(ending);
    await openLog(ending, database).append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    thief = await connect(ending, database.servingConnectionString);
    owner =
      (await thief.query<{ name: string }>(`SELECT tableowner AS name FROM pg_tables WHERE tablename = 'events'`))
        .rows[0]?.name ?? '';
  });

  const content = async () => (await thief.query('SELECT * FROM events ORDER BY position')).rows;

  // The attack: each statement would change or hide history, or win the right to.
  const attacks = (): readonly string[] => [
    `UPDATE events SET data = '{}'`,
    'UPDATE events SET position = position',
    'DELETE FROM events',
    'TRUNCATE events',
    'INSERT INTO events SELECT * FROM events',
    'SELECT * FROM events FOR UPDATE',
    'ALTER TABLE events ADD COLUMN more int',
    'ALTER TABLE events RENAME TO other',
    'ALTER TABLE events DISABLE TRIGGER ALL',
    'ALTER TABLE events ENABLE ROW LEVEL SECURITY',
    'CREATE RULE hide AS ON INSERT TO events DO INSTEAD NOTHING',
    'CREATE TRIGGER spy BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
    'CREATE INDEX ON events (type)',
    'DROP TABLE events',
    'DROP SCHEMA public CASCADE',
    'CREATE SCHEMA mine',
    'CREATE TABLE public.mine (n int)',
    `CREATE OR REPLACE FUNCTION append_events(batch json) RETURNS text LANGUAGE sql AS 'SELECT ''[]'''`,
    'DROP FUNCTION append_events(json)',
    'ALTER FUNCTION append_events(json) OWNER TO CURRENT_USER',
    'ALTER FUNCTION prune_stream(text, integer, text) RESET search_path',
    `CREATE FUNCTION public.split_part(name, text, int) RETURNS text LANGUAGE sql AS 'SELECT ''transfer'''`,
    'SET session_replication_role TO replica',
    `SET ROLE ${thief.escapeIdentifier(owner)}`,
    `SET SESSION AUTHORIZATION ${thief.escapeIdentifier(owner)}`,
    `GRANT ${thief.escapeIdentifier(owner)} TO CURRENT_USER`,
    'ALTER ROLE CURRENT_USER SUPERUSER',
    `ALTER DATABASE ${thief.escapeIdentifier(new URL(database.connectionString).pathname.slice(1))} RENAME TO other`,
    `COPY events TO PROGRAM 'cat'`,
    'DELETE FROM log_migrations',
    'UPDATE log_keys SET generation = 0',
    'DELETE FROM log_keys',
  ];

  test('changes, removes and reorders no event, and wins no right to', async () => {
    const before = await content();
    for (const attack of attacks()) {
      await assert.rejects(thief.query(attack), NOT_ALLOWED, attack).catch((error: unknown) => {
        throw new Error(`${attack}: ${String(error)}`);
      });
    }
    // PostgreSQL only warns that it grants nothing.
    await thief.query('GRANT UPDATE ON events TO CURRENT_USER');
    await assert.rejects(thief.query('UPDATE events SET position = position'), NOT_ALLOWED);
    assert.deepEqual(await content(), before);
  });

  test('prunes no stream of the record', async () => {
    const before = await content();
    for (const { stream } of before) {
      await assert.rejects(thief.query(`SELECT prune_stream($1, 0, '9999')`, [stream]), /operational category/);
    }
    assert.deepEqual(await content(), before);
  });

  // The attack: a snapshot from before a stream grew makes it lose its beginning and keep its end.
  test('prunes no part of a stream', async () => {
    const store = openLog(ending, database);
    const stream = streamName('transfer', newId());
    await store.append({ stream, expected: 'none', events: [newEvent({ isRecord: false })] });
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const patient = await connect(ending, database.servingConnectionString);
    await patient.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await patient.query('SELECT FROM events');
    await store.append({ stream, expected: 0, events: [newEvent({ isRecord: false })] });
    await assert.rejects(patient.query(`SELECT prune_stream($1, 0, '9999')`, [stream]), /needs READ COMMITTED/);
    await patient.query('ROLLBACK');
    assert.equal((await store.readStream(stream, { direction: 'forwards', limit: 9 })).length, 2);
  });

  // The attack: a table of its own takes the place of `events` in a function that runs with the owner's rights.
  test('gives append_events and prune_stream no other tables or functions to work on', async () => {
    const mine = await connect(ending, database.servingConnectionString);
    await mine.query('CREATE TEMP TABLE events AS SELECT * FROM public.events WHERE false');
    await mine.query(`SET search_path TO pg_temp, public`);
    const store = openLog(ending, database);
    const stream = streamName('transfer', newId());
    const record = newStream();
    await store.append({ stream, expected: 'none', events: [newEvent({ isRecord: false })] });
    await store.append({ stream: record, expected: 'none', events: [newEvent()] });
    const forged = [{ stream: record, expected: -1, events: [{ event_id: newId() }] }];
    const answer = await mine.query('SELECT append_events($1) AS text', [JSON.stringify(forged)]);
    assert.deepEqual(JSON.parse(answer.rows[0].text), [['conflict', 0, 0]], 'it sees the log');
    assert.equal((await mine.query(`SELECT prune_stream($1, 0, '9999') AS done`, [stream])).rows[0].done, true);
    assert.equal((await mine.query('SELECT FROM pg_temp.events')).rowCount, 0);
    const streams = (await store.readAll(LOG_START, 100)).map((event) => event.stream);
    assert.ok(streams.includes(record) && !streams.includes(stream));
  });

  test('is the only one but the owner who may call these functions', async () => {
    const stranger = await newRole(ending, database);
    const client = await connect(ending, stranger.url);
    await assert.rejects(client.query(`SELECT append_events('[]')`), NOT_ALLOWED);
    await assert.rejects(client.query(`SELECT prune_stream('transfer-1', 0, '9999')`), NOT_ALLOWED);
  });
});

describe('The role that serves', () => {
  const ending = suiteEnding();

  test('appends, and makes and drops the tables of read models', async () => {
    const database = await newDatabase(ending);
    const store = openLog(ending, database);
    const stream = newStream();
    const [event] = [newEvent()];
    assert.equal((await store.append({ stream, expected: 'none', events: [event] })).outcome, 'appended');
    assert.equal((await store.append({ stream, expected: 'none', events: [event] })).outcome, 'appended', 'a retry');
    // An id of another event: append_events takes back what it had inserted.
    await assert.rejects(store.append({ stream: newStream(), expected: 'none', events: [newEvent(), event] }));
    assert.equal(await store.head(), 1n);
    const client = await connect(ending, database.servingConnectionString);
    await createRunnerTables(client);
    await client.query('CREATE TABLE read_models.one_v1_1 (n int)');
    await client.query('DROP TABLE read_models.one_v1_1');
  });

  test('has a right for every table, so that each new one is decided', async () => {
    const database = await newDatabase(ending);
    const client = await connect(ending, database.servingConnectionString);
    const { rows } = await client.query(
      `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
         AND NOT has_table_privilege(oid, 'SELECT')`,
    );
    assert.deepEqual(rows, []);
  });

  test('gets the tables of an older version, in which one role was everything, by several servers at the same time', async () => {
    const database = await newDatabase(ending);
    const old = await connect(ending, database.connectionString);
    await createRunnerTables(old);
    await old.query('CREATE TABLE read_models.kept_v1_1 AS SELECT 42 AS n');
    const role = await newRole(ending, database);
    const connections = { connectionString: role.url, ownerConnectionString: database.connectionString };
    await Promise.all([1, 2, 3].map(() => prepareDatabase({ ...connections, log: keepLog() })));
    const client = await connect(ending, role.url);
    await client.query('ALTER TABLE read_models.kept_v1_1 RENAME TO kept_v1_2');
    assert.deepEqual((await client.query('SELECT n FROM read_models.kept_v1_2')).rows, [{ n: 42 }]);
    await assert.rejects(client.query('DELETE FROM events'), NOT_ALLOWED);
    // A right too many is taken away by the next start, and so are those that a restored database gives everybody.
    await old.query(`GRANT UPDATE, DELETE ON events TO ${role.name}`);
    await old.query('GRANT EXECUTE ON FUNCTION append_events(json) TO PUBLIC');
    await client.query('DELETE FROM events');
    await prepareDatabase({ ...connections, log: keepLog() });
    await assert.rejects(client.query('DELETE FROM events'), NOT_ALLOWED);
    const open = `SELECT has_function_privilege('public', 'append_events(json)', 'EXECUTE') AS open`;
    assert.deepEqual((await old.query(open)).rows, [{ open: false }]);
    const log = keepLog();
    await prepareDatabase({ ...connections, log });
    assert.deepEqual(log.lines, [], 'nothing was left to change');
  });

  // The attack: an operator means well, and names a role that can still change the log.
  test('is refused by a start that knows the owner, if it could do more', async () => {
    const database = await newDatabase(ending);
    const name = new URL(database.connectionString).pathname.slice(1);
    const owner = await connect(ending, database.connectionString);
    const role = await newRole(ending, database);
    const mighty = owner.escapeIdentifier(new URL(database.connectionString).username);
    const prepare = (connectionString: string) =>
      prepareDatabase({ connectionString, ownerConnectionString: database.connectionString, log: keepLog() });
    await assert.rejects(prepare(database.connectionString), /is a superuser/);
    for (const [give, take, words] of [
      [`ALTER ROLE ${role.name} CREATEROLE`, `ALTER ROLE ${role.name} NOCREATEROLE`, /may make roles/],
      [`GRANT ${mighty} TO ${role.name}`, `REVOKE ${mighty} FROM ${role.name}`, /member of its owner/],
      [`ALTER DATABASE ${name} OWNER TO ${role.name}`, `ALTER DATABASE ${name} OWNER TO CURRENT_USER`, /owns the data/],
      [
        'GRANT CREATE ON SCHEMA public TO PUBLIC',
        'REVOKE CREATE ON SCHEMA public FROM PUBLIC',
        /REVOKE CREATE ON SCHEMA/,
      ],
      [`GRANT CREATE ON DATABASE ${name} TO PUBLIC`, `REVOKE CREATE ON DATABASE ${name} FROM PUBLIC`, /make schemas/],
      [`GRANT pg_write_server_files TO ${role.name}`, `REVOKE pg_write_server_files FROM ${role.name}`, /write files/],
      [`GRANT pg_write_all_data TO ${role.name}`, `REVOKE pg_write_all_data FROM ${role.name}`, /INSERT.* on events/],
      ['GRANT UPDATE (data) ON events TO PUBLIC', 'REVOKE UPDATE (data) ON events FROM PUBLIC', /UPDATE on events/],
    ] as const) {
      await owner.query(give);
      await assert.rejects(prepare(role.url), words, give);
      await owner.query(take);
    }
    const elsewhere = await newDatabase(ending);
    await assert.rejects(prepare(elsewhere.servingConnectionString), /do not name the same database/);
    await prepare(role.url);
  });

  test('serves without the owner when nothing is to be migrated, and else says what is missing', async () => {
    const database = await newDatabase(ending);
    const connectionString = database.servingConnectionString;
    await prepareDatabase({ connectionString, ownerConnectionString: null, log: keepLog() });
    const owner = await connect(ending, database.connectionString);
    await owner.query('DELETE FROM log_migrations WHERE name = (SELECT max(name) FROM log_migrations)');
    await assert.rejects(
      prepareDatabase({ connectionString, ownerConnectionString: null, log: keepLog() }),
      /cannot migrate the database. Set STRATA_DATABASE_OWNER_URL/,
    );
  });

  test('keeps the rights that a newer version gave it, but none on events, when an older one starts beside it', async () => {
    const database = await newDatabase(ending);
    const owner = await connect(ending, database.connectionString);
    const role = await newRole(ending, database);
    const prepare = () =>
      prepareDatabase({
        connectionString: role.url,
        ownerConnectionString: database.connectionString,
        log: keepLog(),
      });
    await owner.query(`GRANT ${role.name} TO CURRENT_USER`);
    await prepare();
    await owner.query(`INSERT INTO log_migrations (name, timestamp) VALUES ('999-later', now()::text)`);
    await owner.query(`INSERT INTO log_migration_kinds VALUES ('999-later', 'expand')`);
    await owner.query(`GRANT INSERT ON log_migration_kinds TO ${role.name}`);
    await owner.query(`GRANT DELETE ON events TO ${role.name}`);
    await prepare();
    const { rows } = await owner.query(
      `SELECT has_table_privilege($1::name, 'log_migration_kinds', 'INSERT') AS kinds,
         has_table_privilege($1::name, 'events', 'DELETE') AS events`,
      [role.name],
    );
    assert.deepEqual(rows, [{ kinds: true, events: false }]);
  });

  test('that is the owner still serves, and the operator is told how to change that', async () => {
    const database = await newDatabase(ending);
    const advice = async (connectionString: string): Promise<string | null> => {
      const pool = createPool({ connectionString, log: keepLog() });
      cleanUp(ending, () => pool.end());
      return tooMighty(pool);
    };
    assert.equal(await advice(database.servingConnectionString), null);
    const { url } = await newRole(ending, database, 'SUPERUSER');
    const text = (await advice(url)) ?? '';
    assert.match(text, /can change and remove events.*CREATE ROLE strata_server .*STRATA_DATABASE_OWNER_URL/);
    assert.doesNotMatch(text, /no-secret/);
  });
});
