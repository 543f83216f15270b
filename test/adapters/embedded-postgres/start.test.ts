/** Starting and stopping the embedded PostgreSQL. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, type TestContext, test } from 'vitest';
import { embeddedBinaries } from '../../../adapters/embedded-postgres/binaries.ts';
import { ensureCluster, prepareHome, readOrMakePassword } from '../../../adapters/embedded-postgres/cluster.ts';
import { joinEmbeddedPostgres } from '../../../adapters/embedded-postgres/join.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import { postgresUser } from '../../../adapters/embedded-postgres/unix-user.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { copyMadeDataDir, madeDataDir } from '../../support/made-data-dir.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** Fast, and safe in tests that do not lose power. */
const settings = { fsync: 'off' };

async function start(context: TestContext, dataDir: string): Promise<EmbeddedPostgres> {
  const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
  cleanUp(context, () => embedded.stop());
  return embedded;
}

async function query(connectionString: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString });
  // Tests kill servers; an error of the query is still thrown.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query({ text, rowMode: 'array' })).rows.flat();
  } finally {
    await client.end();
  }
}

describe('the embedded PostgreSQL', () => {
  test('keeps its data from one start to the next', async (context) => {
    const dataDir = path.join(await tempDir(context), 'data, "of" a $strange `name`');
    const first = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    await query(first.ownerConnectionString, 'CREATE TABLE kept AS SELECT 42 AS n');
    await first.stop();
    await assert.rejects(query(first.connectionString, 'SELECT 1'));
    const second = await start(context, dataDir);
    assert.deepEqual(await query(second.ownerConnectionString, 'SELECT n FROM kept'), [42]);
  });

  test('has UTF-8, checksums, locale C, a private socket, private files and a password', async (context) => {
    const dataDir = await madeDataDir(context);
    const { connectionString } = await start(context, dataDir);
    const setting = (name: string) => query(connectionString, `SHOW ${name}`);
    assert.deepEqual(await setting('server_encoding'), ['UTF8']);
    assert.deepEqual(await setting('data_checksums'), ['on']);
    assert.deepEqual(await setting('lc_collate').catch(() => setting('lc_messages')), ['C']);
    assert.deepEqual(await setting('listen_addresses'), ['']);
    assert.deepEqual(await query(connectionString, 'SELECT current_database()'), ['strata']);
    const mode = async (name: string) => (await stat(path.join(dataDir, 'postgres', name))).mode & 0o777;
    assert.equal(await mode('password'), 0o600);
    assert.equal(await mode('socket'), 0o700);
    assert.equal(await mode('cluster'), 0o700);
    const wrong = connectionString.replace(/:[0-9a-f]{48}@/, ':wrong@');
    await assert.rejects(query(wrong, 'SELECT 1'), { code: '28P01' });
  });

  test('logs no statement and no value, and gets nothing of the server’s environment', async (context) => {
    const dataDir = await madeDataDir(context);
    process.env['STRATA_TEST_CANARY'] = 'canary-in-the-environment';
    cleanUp(context, () => delete process.env['STRATA_TEST_CANARY']);
    const embedded = await start(context, dataDir);
    await query(embedded.ownerConnectionString, 'CREATE TABLE once (secret text UNIQUE)');
    await query(embedded.ownerConnectionString, "INSERT INTO once VALUES ('canary-value')");
    await assert.rejects(query(embedded.ownerConnectionString, "INSERT INTO once VALUES ('canary-value')"));
    assert.doesNotMatch(await readFile(path.join(dataDir, 'postgres', 'postgres.log'), 'utf8'), /canary/);
    if (process.platform === 'linux') {
      assert.doesNotMatch(await readFile(`/proc/${embedded.pid()}/environ`, 'utf8'), /canary/);
    }
  });

  /**
   * The variables of libpq (PostgreSQL 18, section 32.15) as a machine has them whose programs use another database,
   * and those that pg reads beside them (node-postgres 8.23, lib/connection-parameters.js).
   */
  const OF_ANOTHER_DATABASE = {
    PGHOST: 'db.example.org',
    PGPORT: '6432',
    PGUSER: 'somebody',
    PGPASSWORD: 'elsewhere',
    PGDATABASE: 'other',
    PGSSLMODE: 'verify-full',
    PGSSLNEGOTIATION: 'direct',
    PGOPTIONS: '-c search_path=other -c default_transaction_read_only=on -c no.such_thing=1',
    PGCLIENTENCODING: 'LATIN1',
    PGCLIENT_ENCODING: 'LATIN1',
    PGREPLICATION: 'database',
    PGAPPNAME: 'other',
    PGTZ: 'Asia/Tokyo',
    PGDATESTYLE: 'German',
    PGCONNECT_TIMEOUT: '1',
  };

  for (const folder of ['data', 'x'.repeat(100)]) {
    const place = folder === 'data' ? 'a socket' : 'loopback';
    test(`is reached on ${place} whatever the variables of libpq say of another database`, async (context) => {
      Object.assign(process.env, OF_ANOTHER_DATABASE);
      cleanUp(context, () => {
        for (const name of Object.keys(OF_ANOTHER_DATABASE)) delete process.env[name];
      });
      const dataDir = path.join(await tempDir(context), folder);
      await copyMadeDataDir(dataDir);
      const embedded = await start(context, dataDir);
      await query(embedded.ownerConnectionString, "CREATE TABLE kept AS SELECT 'Jürgen ☃' AS name");
      const { connectionString, ownerConnectionString } = await joinEmbeddedPostgres(dataDir);
      assert.deepEqual(await query(ownerConnectionString ?? '', 'SELECT name FROM kept'), ['Jürgen ☃']);
      // libpq takes a plus sign for itself, not for a blank.
      assert.doesNotMatch(connectionString, /\+/);
      const settled = `SELECT current_setting(name) FROM unnest(ARRAY['search_path', 'timezone', 'client_encoding']) name`;
      assert.deepEqual(await query(connectionString, settled), ['"$user", public', 'UTC', 'UTF8']);
    });
  }

  test('makes its database with programs in a folder whose name means something to a shell', async (context) => {
    const { initdb, postgres, version } = await embeddedBinaries();
    const folder = path.join(await tempDir(context), 'my "odd" $HOME `id` \\ checkout');
    await mkdir(path.join(folder, 'bin'), { recursive: true });
    for (const program of [initdb, postgres]) await copyFile(program, path.join(folder, 'bin', path.basename(program)));
    const native = path.dirname(path.dirname(initdb));
    for (const name of ['lib', 'share']) await symlink(path.join(native, name), path.join(folder, name));
    const programs = { initdb: path.join(folder, 'bin/initdb'), postgres: path.join(folder, 'bin/postgres'), version };
    const paths = await prepareHome(await tempDir(context));
    await ensureCluster(paths, programs, await postgresUser(paths.cluster), await readOrMakePassword(paths));
    assert.match(await readFile(path.join(paths.cluster, 'PG_VERSION'), 'utf8'), /^\d+\n$/);
  });

  test('says every ten seconds of a slow start what each probe failed with', async (context) => {
    const dataDir = await madeDataDir(context);
    const log = keepLog();
    // It listens where nobody asks.
    const elsewhere = { ...settings, port: '5433' };
    const waiting = startEmbeddedPostgres({ processFacts, dataDir, log, settings: elsewhere });
    const warned = () => log.lines.filter(({ message }) => message.startsWith('PostgreSQL is still starting'));
    while (warned().length === 0) await sleep(100);
    assert.match(JSON.stringify(warned()[0]?.fields), /"code":"ENOENT".*5432/);
    const pid = Number((await readFile(path.join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8')).split('\n')[0]);
    process.kill(pid, 'SIGKILL');
    await assert.rejects(waiting, { code: 'start-failed' });
  });

  test('is started again at the same address when it ends unexpectedly', async (context) => {
    const embedded = await start(context, await madeDataDir(context));
    const killed = embedded.pid();
    assert.ok(killed !== null);
    process.kill(killed, 'SIGKILL');
    while (embedded.pid() === null || embedded.pid() === killed) await sleep(10);
    assert.deepEqual(await query(embedded.connectionString, 'SELECT 1'), [1]);
  });

  test('stays stopped when it is stopped while it is being started again', async (context) => {
    const dataDir = await madeDataDir(context);
    for (const waitMs of [0, 20, 150]) {
      const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
      process.kill(embedded.pid() ?? 0, 'SIGKILL');
      await sleep(waitMs);
      await Promise.all([embedded.stop(), embedded.stop()]);
      await assert.rejects(query(embedded.connectionString, 'SELECT 1'));
    }
  });

  test('listens on the loopback interface if the path is too long for a socket', async (context) => {
    const dataDir = path.join(await tempDir(context), 'x'.repeat(100));
    await copyMadeDataDir(dataDir);
    const { connectionString } = await start(context, dataDir);
    assert.match(connectionString, /@127\.0\.0\.1:\d+\/strata\?/);
    assert.deepEqual(await query(connectionString, 'SHOW listen_addresses'), ['127.0.0.1']);
  });

  test('is joined by its file, also where a server of an older version with one role wrote it', async (context) => {
    const dataDir = await madeDataDir(context);
    const { connectionString, ownerConnectionString } = await start(context, dataDir);
    assert.deepEqual(await joinEmbeddedPostgres(dataDir), { connectionString, ownerConnectionString });
    assert.deepEqual(await query(connectionString, 'SELECT session_user'), ['strata_server']);
    assert.deepEqual(await query(ownerConnectionString, 'SELECT session_user'), ['strata']);
    await writeFile(path.join(dataDir, 'postgres/connection'), ownerConnectionString);
    const one = { connectionString: ownerConnectionString, ownerConnectionString: null };
    assert.deepEqual(await joinEmbeddedPostgres(dataDir), one);
  });

  test('refuses a cluster of another version and says what to do', async (context) => {
    const dataDir = await madeDataDir(context);
    await writeFile(path.join(dataDir, 'postgres/cluster/PG_VERSION'), '12\n');
    const refused = startEmbeddedPostgres({ processFacts, dataDir, log: keepLog() });
    await assert.rejects(refused, { code: 'version-mismatch', message: /PostgreSQL 12.*Export the event log/ });
  });

  test('refuses a cluster whose password is lost', async (context) => {
    const dataDir = await madeDataDir(context);
    await rm(path.join(dataDir, 'postgres/password'));
    await assert.rejects(startEmbeddedPostgres({ processFacts, dataDir, log: keepLog() }), {
      code: 'cluster-unusable',
    });
  });

  test('reports the end of its log when it cannot start', async (context) => {
    const dataDir = await madeDataDir(context);
    const broken = startEmbeddedPostgres({
      processFacts,
      dataDir,
      log: keepLog(),
      settings: { shared_buffers: 'many' },
    });
    await assert.rejects(broken, { code: 'start-failed', message: /exit code 1.*shared_buffers/ });
    await start(context, dataDir);
  });
});
