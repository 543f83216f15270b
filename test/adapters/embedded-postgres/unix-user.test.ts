/** The user that PostgreSQL runs as, under root and under an ordinary user. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { promisify } from 'node:util';
import { startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { keepLog } from '../../support/log.ts';
import { copyMadeDataDir, madeDataDir } from '../../support/made-data-dir.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { startServerProcess } from './server-process.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { skippedFor } from '../../support/skipped.ts';

const asRoot = process.getuid?.() === 0;
const needsRoot = asRoot ? false : 'SKIPPED: needs root, to run as several users';
const settings = { fsync: 'off' };
const NOBODY = 65_534;

async function uidOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
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

  test('is named in the error when it cannot enter a folder', skippedFor(needsRoot), async (context) => {
    const blockingFolder = path.join(await tempDir(context), 'private');
    await mkdir(blockingFolder, { mode: 0o700 });
    const dataDir = path.join(blockingFolder, 'data');
    await copyMadeDataDir(dataDir);
    const refused = startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    await assert.rejects(refused, { code: 'folder-barred', message: new RegExp(`cannot enter ${blockingFolder} `) });
    await chmod(blockingFolder, 0o711);
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings });
    await embedded.stop();
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
