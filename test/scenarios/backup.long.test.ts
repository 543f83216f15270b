/**
 * Backups under load and their restores, in every place where a service may keep its state, and to a point in time.
 * `STRATA_BACKUP_ROUNDS=6` does each that often, which is as much as the time limit of a file allows;
 * `STRATA_BACKUP_SEED` repeats the choices of one run.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { appendFile, chmod, mkdir, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, type TestContext, test } from 'vitest';
import { joinEmbeddedPostgres } from '../../adapters/embedded-postgres/join.ts';
import { cleanUp } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { madeDataDir } from '../support/made-data-dir.ts';
import { needs } from '../support/optional-suites.ts';
import { startTestCluster } from '../support/postgres.ts';
import { eventually } from '../support/processes.ts';
import {
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { findTool } from '../support/tools.ts';
import { startS3Server } from '../support/versitygw.ts';
import { type BackedUpService, backUpAndRestore, embeddedService, script } from './backup.ts';

const ROUNDS = Number(process.env['STRATA_BACKUP_ROUNDS'] ?? 1);
const SEED = Number(process.env['STRATA_BACKUP_SEED'] ?? Date.now() % 2 ** 31);

async function query(connectionString: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** A PostgreSQL of its own with the two roles of docs/operating.md, and layers in a folder or in a bucket. */
async function ownService(context: TestContext, layers: 'folder' | 'bucket'): Promise<BackedUpService> {
  const cluster = await startTestCluster();
  cleanUp(context, () => cluster.stop());
  const administrator = new URL(cluster.connectionString);
  const password = randomBytes(8).toString('hex');
  for (const role of ['owner', 'server']) {
    await query(administrator.href, `CREATE ROLE backup_${role} LOGIN PASSWORD '${password}'`);
  }
  await query(administrator.href, 'GRANT backup_server TO backup_owner');
  const newDatabase = () =>
    query(administrator.href, 'CREATE DATABASE service OWNER backup_owner ENCODING UTF8 TEMPLATE template0');
  await newDatabase();
  const urlOf = (role: string): string => {
    const url = new URL(administrator);
    [url.username, url.password, url.pathname] = [role, password, '/service'];
    return url.href;
  };
  const folder = path.join(await tempDir(context), 'layers');
  const s3 = layers === 'bucket' ? await startS3Server(context) : null;
  const store = s3 === null ? { STRATA_LAYERS_DIR: folder } : bucketSettings(s3);
  const programs = path.dirname(await realpath(findTool('pg_dump-18') ?? ''));
  return {
    dataDir: await tempDir(context),
    env: {
      ...store,
      PATH: `${programs}${path.delimiter}${process.env['PATH']}`,
      STRATA_DATABASE_URL: urlOf('backup_server'),
      STRATA_DATABASE_OWNER_URL: urlOf('backup_owner'),
      STRATA_MASTER_KEY: 'ab'.repeat(32),
    },
    async loseDatabase() {
      const refused = await query(administrator.href, 'ALTER DATABASE service RENAME TO service_before');
      assert.deepEqual(refused, []);
      await newDatabase();
      return {};
    },
    loseLayers: () => rm(s3 === null ? folder : path.join(s3.folder, 'git'), { recursive: true }),
  };
}

function bucketSettings(s3: Awaited<ReturnType<typeof startS3Server>>): Readonly<Record<string, string>> {
  return {
    STRATA_STORAGE: 's3',
    STRATA_S3_ENDPOINT: s3.url,
    STRATA_S3_REGION: s3.region,
    STRATA_S3_BUCKET: s3.bucket,
    STRATA_S3_PREFIX: 'git',
    STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId,
    STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };
}

for (let round = 0; round < ROUNDS; round += 1) {
  const seed = SEED + round;
  test(`seed ${seed}: the embedded database, with layers in a folder`, async (context) => {
    await backUpAndRestore(context, embeddedService(await madeDataDir(context)), seed);
  });
  describe("an operator's own PostgreSQL", needs('pg_dump-18'), () => {
    test(`seed ${seed}: with layers in a folder`, async (context) => {
      await backUpAndRestore(context, await ownService(context, 'folder'), seed);
    });
    test(`seed ${seed}: with layers in a bucket`, needs('versitygw'), async (context) => {
      await backUpAndRestore(context, await ownService(context, 'bucket'), seed);
    });
  });
}

describe("an operator's own PostgreSQL", needs('pg_dump-18'), () => {
  test('is restored into an empty database only', async (context) => {
    const service = await ownService(context, 'folder');
    const strata = await startStrata(context, { log: 'postgres', ...service });
    await createAccount(strata, 'ada');
    const folder = path.join(await tempDir(context), 'backup');
    assert.equal((await script('backup.sh', strata.env, [folder])).code, 0);
    await strata.stop();
    const { code, stderr } = await script('restore.sh', strata.env, [folder]);
    assert.equal(code, 1);
    assert.match(stderr, /The database service is not empty, .* ALTER DATABASE service RENAME TO service_before/);
  });
});

async function ownerOf(strata: Strata): Promise<string> {
  return (await joinEmbeddedPostgres(strata.dataDir)).ownerConnectionString ?? '';
}

test('the embedded database is restored to a point in time, from a backup and the archive of its log', async (context) => {
  const dataDir = await madeDataDir(context);
  const archive = path.join(await tempDir(context), 'wal');
  await mkdir(archive);
  // PostgreSQL runs as another user where the tests run as root.
  await chmod(archive, 0o777);
  const settings = [
    'archive_mode = on',
    `archive_command = 'test ! -f "${archive}/%f" && cp "%p" "${archive}/%f"'`,
    'archive_timeout = 60',
  ];
  await appendFile(path.join(dataDir, 'postgres/cluster/postgresql.conf'), `${settings.join('\n')}\n`);
  const strata = await startStrata(context, { log: 'postgres', dataDir });
  const ada = await createAccount(strata, 'ada');
  const work = await newWorkTree(context);
  const url = await createRepository(strata, ada, 'engine');
  await git(work, ['push', '--quiet', url, 'main']);
  const folder = path.join(await tempDir(context), 'backup');
  const saved = await script('backup.sh', strata.env, [folder]);
  assert.equal(saved.code, 0, saved.stderr);

  const kept = await commitFile(work, 'kept', 'kept\n');
  await git(work, ['push', '--quiet', url, 'main']);
  await sleep(1_500);
  const until = new Date().toISOString();
  await sleep(1_500);
  await commitFile(work, 'mistake', 'mistake\n');
  await git(work, ['push', '--quiet', url, 'main']);
  const [row] = await query(await ownerOf(strata), 'SELECT pg_walfile_name(pg_switch_wal()) AS segment');
  await eventually('the log is archived', async () => (await filesBelow(archive)).includes(String(row?.['segment'])));
  await strata.kill();

  const restored = await script('restore.sh', strata.env, [folder, '--wal', archive, '--until', until]);
  assert.equal(restored.code, 0, `${restored.stdout}${restored.stderr}`);
  assert.match(restored.stdout, /The files of the database before are in .*postgres\.before-/);
  const again = await strata.restart();
  assert.equal(await git(work, ['ls-remote', url, 'main']), `${kept}\trefs/heads/main\n`);
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await again.stop(), 0);
});
