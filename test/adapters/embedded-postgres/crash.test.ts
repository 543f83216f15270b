/** Starts on a data directory whose server was killed. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, test } from 'vitest';
import { startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { madeDataDir } from '../../support/made-data-dir.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { startServerProcess } from './server-process.ts';

const settings = { fsync: 'off' };

async function isAlive(pid: number): Promise<boolean> {
  const facts = await processFacts(pid);
  return facts !== null && !facts.zombie;
}

async function count(connectionString: string): Promise<number> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return Number((await client.query('SELECT count(*) AS n FROM kept')).rows[0].n);
  } finally {
    await client.end();
  }
}

describe('after a crash', () => {
  test('the next start stops the PostgreSQL of the killed server, and keeps what it committed', async (context) => {
    const dataDir = await madeDataDir(context);
    const killed = startServerProcess(context, dataDir);
    const { connectionString = '', pid = 0 } = await killed.firstLine;
    const client = new pg.Client({ connectionString });
    client.on('error', () => {});
    await client.connect();
    await client.query('CREATE TABLE kept (n int)');
    await client.query('INSERT INTO kept VALUES (1), (2)');
    await killed.kill();
    assert.ok(await isAlive(pid), 'the orphan still runs');

    const log = keepLog();
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log, settings });
    cleanUp(context, () => embedded.stop());
    assert.ok(!(await isAlive(pid)));
    assert.ok(log.lines.some((line) => line.message.includes('left behind')));
    assert.equal(embedded.ownerConnectionString, connectionString);
    assert.equal(await count(embedded.ownerConnectionString), 2);
    await client.end().catch(() => {});
  });

  test('a postmaster.pid that names another program prevents no start and ends no process', async (context) => {
    const dataDir = await madeDataDir(context);
    const cluster = path.join(dataDir, 'postgres/cluster');
    const { uid, gid } = await stat(cluster);
    // Runs as PostgreSQL's user: PostgreSQL could take only such a process for another server on the directory.
    const other: ChildProcess = spawn('sleep', ['600'], { uid, gid, cwd: '/' });
    cleanUp(context, () => other.kill());
    await writeFile(path.join(cluster, 'postmaster.pid'), `${other.pid}\n${cluster}\n1700000000\n5432\n\n\n`);
    const second = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    cleanUp(context, () => second.stop());
    assert.equal(other.exitCode, null);
    assert.equal(other.signalCode, null);
    assert.ok(await isAlive(other.pid ?? 0));
  });

  test('a cluster that was incomplete is created again', async (context) => {
    const dataDir = await tempDir(context);
    const killed = startServerProcess(context, dataDir);
    const home = path.join(dataDir, 'postgres');
    const made = async () =>
      (await readdir(home, { recursive: true }).catch(() => [])).map((name) => path.basename(name));
    while (!(await made()).includes('PG_VERSION')) await sleep(5);
    await killed.kill();
    assert.ok(!(await readdir(home)).includes('cluster'));
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    cleanUp(context, () => embedded.stop());
    assert.deepEqual((await readdir(home)).sort(), ['cluster', 'connection', 'password', 'postgres.log', 'socket']);
  });

  test('an incomplete cluster does not count as one', async (context) => {
    const dataDir = await tempDir(context);
    await mkdir(path.join(dataDir, 'postgres/new-1/cluster'), { recursive: true, mode: 0o711 });
    await writeFile(path.join(dataDir, 'postgres/new-1/cluster/PG_VERSION'), '18\n');
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    await embedded.stop();
  });

  test('a signal to the group of the server does not reach PostgreSQL', async (context) => {
    const dataDir = await madeDataDir(context);
    const server = startServerProcess(context, dataDir, { detached: true });
    const { pid = 0 } = await server.firstLine;
    // As Ctrl-C does; this server ignores it, like a server that is draining.
    process.kill(-(server.child.pid ?? 0), 'SIGINT');
    await sleep(200);
    assert.ok(await isAlive(pid));
    assert.equal(server.child.exitCode, null);
  });
});
