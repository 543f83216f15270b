/** Follows docs/operating.md: backup and restore, and the move from the embedded database to another. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { madeDataDir } from '../support/made-data-dir.ts';
import {
  admin,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  startStrata,
  tryAdmin,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Copies with owners and modes: PostgreSQL refuses a folder of another owner. */
async function copy(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to]);
}

async function layerFiles(dataDir: string): Promise<readonly string[]> {
  const names = await readdir(path.join(dataDir, 'layers'), { recursive: true });
  return names.filter((name) => name.endsWith('.tar'));
}

test('a data directory copied while its server is stopped restores the service, with or without its cache', async (context) => {
  const dataDir = await madeDataDir(context);
  let strata = await startStrata(context, { log: 'postgres', dataDir });
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const saved = await commitFile(work, 'saved', 'saved\n');
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await strata.stop(), 0);
  const backup = path.join(await tempDir(context), 'backup');
  await copy(dataDir, backup);
  await rm(path.join(backup, 'cache'), { recursive: true });

  strata = await strata.restart();
  await commitFile(work, 'later', 'later\n');
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await strata.stop(), 0);
  await rm(dataDir, { recursive: true });
  await copy(backup, dataDir);
  const verified = (await admin(strata, ['log', 'verify', '--references'])) as { layers: number; faults: string[] };
  assert.deepEqual(verified.faults, []);
  assert.equal(verified.layers, 2);
  strata = await strata.restart();
  assert.equal(await git(work, ['ls-remote', url, 'main']), `${saved}\trefs/heads/main\n`);
  const clone = path.join(await tempDir(context), 'clone');
  await git(work, ['clone', '--quiet', url, clone]);
  await git(clone, ['fsck', '--strict']);
  await git(work, ['push', '--quiet', url, 'main']);

  // The log names a layer that an older backup of the layers lacks; `log verify` reports it.
  const [lost = ''] = await layerFiles(dataDir);
  await rename(path.join(dataDir, 'layers', lost), path.join(dataDir, 'gone'));
  const wanting = await tryAdmin(strata, ['log', 'verify', '--references']);
  assert.equal(wanting.code, 1);
  assert.match(wanting.stdout, /names the layer .*, which is not there/);
});

test('the folder of the embedded database moves to a separate PostgreSQL', async (context) => {
  const dataDir = await madeDataDir(context);
  const embedded = await startStrata(context, { log: 'postgres', dataDir });
  const ada = await createAccount(embedded, 'ada');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', await createRepository(embedded, ada, 'project'), 'main']);
  assert.equal(await embedded.stop(), 0);

  // Any PostgreSQL 18 on a copy of the folder would do; this is an embedded one without a Strata server.
  const elsewhere = path.join(await tempDir(context), 'elsewhere');
  await cp(dataDir, elsewhere, { recursive: true, filter: (file) => file === dataDir });
  await copy(path.join(dataDir, 'postgres'), path.join(elsewhere, 'postgres'));
  const own = await startEmbeddedPostgres({ dataDir: elsewhere, processFacts, log: keepLog() });
  cleanUp(context, () => own.stop());
  const password = (await readFile(path.join(dataDir, 'postgres/password'), 'utf8')).trim();
  assert.ok(own.ownerConnectionString.startsWith(`postgresql://strata:${password}@`));
  await rename(path.join(dataDir, 'postgres'), path.join(dataDir, 'postgres.moved'));
  const env = {
    STRATA_DATABASE_URL: own.connectionString,
    STRATA_DATABASE_OWNER_URL: own.ownerConnectionString,
    STRATA_MASTER_KEY: (await readFile(path.join(dataDir, 'master-key'), 'utf8')).trim(),
    STRATA_LAYERS_DIR: path.join(await tempDir(context), 'layers'),
  };
  await rename(path.join(dataDir, 'layers'), env.STRATA_LAYERS_DIR);
  await startStrata(context, { log: 'postgres', dataDir, env });
  const moved = await startStrata(context, { log: 'postgres', env });
  const url = new URL(`${moved.url}/r/ada/project.git`);
  [url.username, url.password] = ['ada', ada.token];
  const commit = await commitFile(work, 'second', 'second\n');
  await git(work, ['push', '--quiet', url.href, 'main']);
  assert.equal(await git(work, ['ls-remote', url.href, 'main']), `${commit}\trefs/heads/main\n`);
  const { faults } = (await admin(moved, ['log', 'verify', '--references'])) as { faults: string[] };
  assert.deepEqual(faults, []);
});
