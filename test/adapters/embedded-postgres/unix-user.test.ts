/** The user that PostgreSQL runs as, under root and under an ordinary user. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readdir, readFile, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { describe, test } from 'vitest';
import { embeddedBinaries } from '../../../adapters/embedded-postgres/binaries.ts';
import { prepareHome } from '../../../adapters/embedded-postgres/cluster.ts';
import { joinEmbeddedPostgres } from '../../../adapters/embedded-postgres/join.ts';
import { reachablePlace } from '../../../adapters/embedded-postgres/shared-place.ts';
import { startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { type KeptLog, keepLog } from '../../support/log.ts';
import { copyMadeDataDir, madeDataDir } from '../../support/made-data-dir.ts';
import { skippedFor } from '../../support/skipped.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { startServerProcess } from './server-process.ts';

const asRoot = process.getuid?.() === 0;
const needsRoot = asRoot ? false : 'SKIPPED: needs root, to run as several users';
const settings = { fsync: 'off' };
const NOBODY = 65_534;

async function uidOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
}

/** A folder that only root can enter. */
async function barredFolder(context: Ending): Promise<string> {
  const folder = path.join(await tempDir(context), 'private');
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

async function query(connectionString: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** The databases that the log says lie in a folder of their own. */
function placesIn({ lines }: KeptLog): readonly string[] {
  return lines.flatMap(({ fields }) =>
    typeof fields === 'object' && fields !== null && 'database' in fields ? [String(fields.database)] : [],
  );
}

describe('the user of the embedded PostgreSQL', () => {
  test('is not root, and root can use it', skippedFor(needsRoot), async (context) => {
    const log = keepLog();
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir: await madeDataDir(context), log, settings });
    cleanUp(context, () => embedded.stop());
    assert.notEqual(await uidOf(embedded.pid() ?? 0), 0);
    assert.ok(log.lines.some((line) => line.message.includes('refuses to run as root')));
  });

  test('is the server’s own user if that is an ordinary one', skippedFor(needsRoot), async (context) => {
    const dataDir = path.join(await tempDir(context), 'data');
    await mkdir(dataDir, { mode: 0o700 });
    await chown(dataDir, NOBODY, NOBODY);
    const server = startServerProcess(context, dataDir, { uid: NOBODY, gid: NOBODY });
    const { pid = 0 } = await server.firstLine;
    assert.equal(await uidOf(pid), NOBODY);
  });

  test('stays the owner of the cluster when a server under root starts it', skippedFor(needsRoot), async (context) => {
    const dataDir = await madeDataDir(context);
    await promisify(execFile)('chown', ['-R', `${NOBODY}:${NOBODY}`, dataDir]);
    const server = startServerProcess(context, dataDir, { uid: NOBODY, gid: NOBODY });
    await server.firstLine;
    await server.kill();
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    cleanUp(context, () => embedded.stop());
    assert.equal(await uidOf(embedded.pid() ?? 0), NOBODY);
  });

  test(
    'has its database in a folder of its own if it cannot enter the data directory',
    skippedFor(needsRoot),
    async (context) => {
      const dataDir = path.join(await barredFolder(context), 'data');
      const sharedFolder = path.join(await tempDir(context), 'shared');
      const log = keepLog();
      const start = () => startEmbeddedPostgres({ processFacts, dataDir, sharedFolder, log, settings });
      const first = await start();
      cleanUp(context, () => first.stop());
      assert.notEqual(await uidOf(first.pid() ?? 0), 0);
      const [cluster = ''] = placesIn(log);
      assert.ok(cluster.startsWith(`${sharedFolder}/`), 'one line says where');
      assert.equal((await stat(cluster)).mode & 0o777, 0o700);
      await query(first.ownerConnectionString, 'CREATE TABLE kept AS SELECT 42 AS n');
      await first.stop();

      const second = await start();
      cleanUp(context, () => second.stop());
      assert.deepEqual(await query(second.ownerConnectionString, 'SELECT n FROM kept'), [{ n: 42 }]);
      const { ownerConnectionString } = await joinEmbeddedPostgres(dataDir);
      assert.equal(ownerConnectionString, second.ownerConnectionString);
      await second.stop();

      // Imitates a container whose volume holds the data directory alone.
      await rename(cluster, `${cluster}.away`);
      await assert.rejects(start(), { code: 'cluster-unusable', message: /cluster is gone, .* Restore it/ });
      await rename(`${cluster}.away`, cluster);
      const third = await start();
      cleanUp(context, () => third.stop());
      assert.deepEqual(await query(third.ownerConnectionString, 'SELECT n FROM kept'), [{ n: 42 }]);
    },
  );

  test(
    'gets a copy of the programs if it cannot enter their folder, which it cannot change',
    skippedFor(needsRoot),
    async (context) => {
      const sharedFolder = path.join(await tempDir(context), 'shared');
      const barred = path.join(await barredFolder(context), 'native');
      const { postgres, version } = await embeddedBinaries();
      await promisify(execFile)('cp', ['-a', path.dirname(path.dirname(postgres)), barred]);
      const binaries = { postgres: `${barred}/bin/postgres`, initdb: `${barred}/bin/initdb`, version };
      const paths = await prepareHome(path.join(await tempDir(context), 'data'));
      const user = { uid: NOBODY, gid: NOBODY, name: 'nobody' };
      const wanted = { paths, binaries, user, sharedFolder, log: keepLog() };
      const [placed, again] = await Promise.all([reachablePlace(wanted), reachablePlace(wanted)]);
      assert.deepEqual(placed, again);
      assert.deepEqual(placed.paths, paths, 'the database stays in the data directory');
      const asNobody = { uid: NOBODY, gid: NOBODY, cwd: '/' };
      const { stdout } = await promisify(execFile)(placed.binaries.postgres, ['--version'], asNobody);
      assert.match(stdout, /PostgreSQL/);
      const write = promisify(execFile)('touch', [path.join(path.dirname(placed.binaries.postgres), 'x')], asNobody);
      await assert.rejects(write, /Permission denied/);
      const names = await readdir(sharedFolder);
      assert.deepEqual(names, [`programs-${version}`]);
    },
  );

  test('is named in the error when no folder can be made that it can enter', skippedFor(needsRoot), async (context) => {
    const blockingFolder = await barredFolder(context);
    const dataDir = path.join(blockingFolder, 'data');
    await copyMadeDataDir(dataDir);
    const sharedFolder = path.join(blockingFolder, 'shared');
    const start = () => startEmbeddedPostgres({ processFacts, dataDir, sharedFolder, log: keepLog(), settings });
    await assert.rejects(start(), { code: 'folder-barred', message: new RegExp(`cannot enter ${blockingFolder} `) });
    await chmod(blockingFolder, 0o711);
    const embedded = await start();
    await embedded.stop();
  });

  test('gets nothing in a folder that others can write to', skippedFor(needsRoot), async (context) => {
    const sharedFolder = path.join(await tempDir(context), 'shared');
    await mkdir(sharedFolder);
    await chmod(sharedFolder, 0o777);
    const dataDir = path.join(await barredFolder(context), 'data');
    const refused = startEmbeddedPostgres({ processFacts, dataDir, sharedFolder, log: keepLog(), settings });
    await assert.rejects(refused, { code: 'folder-barred' });
    assert.deepEqual(await readdir(sharedFolder), []);
  });

  test('must own the cluster if the server runs as an ordinary user', skippedFor(needsRoot), async (context) => {
    const dataDir = await madeDataDir(context);
    await chown(path.join(dataDir, 'postgres'), NOBODY, NOBODY);
    await chown(path.join(dataDir, 'postgres/password'), NOBODY, NOBODY);
    const firstLine = await startServerProcess(context, dataDir, { uid: NOBODY, gid: NOBODY }).firstLine;
    assert.equal(firstLine.code, 'cluster-unusable');
    assert.match(firstLine.message ?? '', /belongs to uid/);
  });
});
