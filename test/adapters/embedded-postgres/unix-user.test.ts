/** The user PostgreSQL runs as, under root and not. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { keepLog } from '../../support/log.ts';
import { copyMadeDataDir, madeDataDir } from '../../support/made-data-dir.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { startServerProcess } from './server-process.ts';
import { cleanUp } from '../../support/cleanup.ts';

const asRoot = process.getuid?.() === 0;
const needsRoot = asRoot ? false : 'SKIPPED: needs root, to run as several users';
const settings = { fsync: 'off' };
const NOBODY = 65_534;

async function uidOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
}

describe('the user of the embedded PostgreSQL', () => {
  test('is not root, and root can use it', { skip: needsRoot }, async (context) => {
    const log = keepLog();
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir: await madeDataDir(context), log, settings });
    cleanUp(context, () => embedded.stop());
    assert.notEqual(await uidOf(embedded.pid() ?? 0), 0);
    assert.ok(log.lines.some((line) => line.message.includes('refuses to run as root')));
  });

  test('is the server itself where that is an ordinary user', { skip: needsRoot }, async (context) => {
    const dataDir = path.join(await tempDir(context), 'data');
    await mkdir(dataDir, { mode: 0o700 });
    await chown(dataDir, NOBODY, NOBODY);
    const server = startServerProcess(context, dataDir, { uid: NOBODY, gid: NOBODY });
    const { pid = 0 } = await server.said;
    assert.equal(await uidOf(pid), NOBODY);
  });

  test('stays the owner of the cluster when root takes over', { skip: needsRoot }, async (context) => {
    const dataDir = await madeDataDir(context);
    await promisify(execFile)('chown', ['-R', `${NOBODY}:${NOBODY}`, dataDir]);
    const server = startServerProcess(context, dataDir, { uid: NOBODY, gid: NOBODY });
    await server.said;
    await server.kill();
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    cleanUp(context, () => embedded.stop());
    assert.equal(await uidOf(embedded.pid() ?? 0), NOBODY);
  });

  test('is told to the operator when a folder bars its way', { skip: needsRoot }, async (context) => {
    const barring = path.join(await tempDir(context), 'private');
    await mkdir(barring, { mode: 0o700 });
    const dataDir = path.join(barring, 'data');
    await copyMadeDataDir(dataDir);
    const refused = startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    await assert.rejects(refused, { code: 'folder-barred', message: new RegExp(`cannot enter ${barring} `) });
    await chmod(barring, 0o711);
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    await embedded.stop();
  });

  test('must own the cluster where the server is an ordinary user', { skip: needsRoot }, async (context) => {
    const dataDir = await madeDataDir(context);
    await chown(path.join(dataDir, 'postgres'), NOBODY, NOBODY);
    await chown(path.join(dataDir, 'postgres/password'), NOBODY, NOBODY);
    const said = await startServerProcess(context, dataDir, { uid: NOBODY, gid: NOBODY }).said;
    assert.equal(said.code, 'cluster-unusable');
    assert.match(said.message ?? '', /belongs to uid/);
  });
});
