/**
 * Moves a whole service to another database, or its log to another store, by `strata-admin log export` and `import`.
 */
import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { describe, type TestContext, test } from 'vitest';
import { eventStoreDbSettings } from '../support/eventstoredb/process.ts';
import { filledInstallation, type Installation, newInstallation, query } from '../support/installations.ts';
import {
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  type LogKind,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

async function moveVault(from: Installation, to: Installation): Promise<void> {
  for (const table of ['vault_keys', 'vault_records']) {
    const [row] = await query(from, `SELECT json_agg(t)::text AS rows FROM ${table} AS t`);
    const client = new pg.Client({ connectionString: to.connectionString });
    await client.connect();
    await client.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`, [
      row?.['rows'],
    ]);
    await client.end();
  }
}

const WAYS = [
  ['postgres', 'postgres'],
  ['postgres', 'eventstoredb'],
  ['eventstoredb', 'postgres'],
] as const;

async function moveThere(context: TestContext, from: LogKind, to: LogKind): Promise<void> {
  const shared = await sharedParts(context, from);
  const source = await startNode(context, shared);
  const ada = await createAccount(source, 'ada');
  const work = await newWorkTree(context);
  const url = await createRepository(source, ada, 'moved');
  for (let round = 0; round < 5; round += 1) {
    await commitFile(work, `file-${round}`, `${round}\n`);
    await git(work, ['push', '--quiet', url, 'main', `main:refs/heads/branch-${round}`]);
  }
  await git(work, ['tag', '-a', 'v1', '-m', 'one']);
  await git(work, ['push', '--quiet', url, 'v1', ':branch-0']);
  await createRepository(source, ada, 'empty');
  const reads = ['/v1/repositories', '/v1/repos/ada/moved/branches', '/v1/repos/ada/moved/commits?limit=100'];
  const answersOf = async (strata: Strata): Promise<readonly string[]> => {
    const answers = await Promise.all(reads.map((target) => api(strata, ada.token, 'GET', target)));
    return answers.map(({ text }) => text.replaceAll(strata.url, 'URL'));
  };
  const before = await answersOf(source);
  await source.stop();
  const file = path.join(await tempDir(context), 'log');
  const exported = (await admin(source, ['log', 'export', file])) as { events: number; digest: string };

  const installation = await newInstallation(context);
  const log = to === 'postgres' ? {} : await eventStoreDbSettings(context);
  const layers = path.join(await tempDir(context), 'layers');
  await cp(shared.layersDir, layers, { recursive: true });
  const target = {
    ...installation,
    env: {
      ...installation.env,
      ...log,
      STRATA_LAYERS_DIR: layers,
      STRATA_MASTER_KEY: shared.env['STRATA_MASTER_KEY'] ?? '',
    },
  };
  await moveVault({ ...source, connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] ?? '' }, target);
  const imported = await admin(target, ['log', 'import', file]);
  assert.deepEqual(imported, { events: exported.events, found: 0, digest: exported.digest });
  await rm(shared.layersDir, { recursive: true });

  const moved = await startStrata(context, { env: target.env, log: to });
  assert.deepEqual(await answersOf(moved), before);
  const clones = await tempDir(context);
  await git(clones, ['clone', '--quiet', '--mirror', gitUrl(moved, ada, 'moved'), 'copy']);
  const refs = ['for-each-ref', '--format=%(refname) %(objectname)'];
  assert.match(await git(path.join(clones, 'copy'), refs), /branch-4/);
  assert.equal(
    await git(path.join(clones, 'copy'), ['rev-parse', 'main', 'v1']),
    await git(work, ['rev-parse', 'main', 'v1']),
  );
  const verified = (await admin(moved, ['projections', 'rebuild', '--verify'])) as {
    projections: { differences: number }[];
  };
  assert.ok(verified.projections.every(({ differences }) => differences === 0));
  const whole = (await admin(moved, ['log', 'verify', '--references'])) as { faults: string[] };
  assert.deepEqual(whole.faults, []);
  const commit = await commitFile(work, 'after', 'after\n');
  await git(work, ['push', '--quiet', gitUrl(moved, ada, 'moved'), 'main']);
  assert.match(await git(work, ['ls-remote', gitUrl(moved, ada, 'moved'), 'main']), new RegExp(commit));
}

describe('Moving a service to another database', () => {
  for (const [from, to] of WAYS) {
    test(`keeps the same repositories, read models and tokens, from ${from} to ${to}`, async (context) => {
      await moveThere(context, from, to);
    });
  }

  test('never serves read models or snapshots of the log that was there before', async (context) => {
    const source = await filledInstallation(context, 5);
    const file = path.join(await tempDir(context), 'log');
    await admin(source, ['log', 'export', file]);
    const installation = await newInstallation(context);
    const server = await startStrata(context, { env: installation.env });
    await createAccount(server, 'ada');
    await server.stop();
    // Imitates a restore that replaced only the log.
    await query(installation, `TRUNCATE events`);
    await query(installation, `INSERT INTO snapshots VALUES ('repository-x', 1, 1000, '{}')`);
    // The server may have read references by then, which made the only row.
    const mark = `VALUES (true, 7, 'account-x', 0, gen_random_uuid()) ON CONFLICT DO NOTHING`;
    await query(installation, `INSERT INTO vault_read_mark ${mark}`);
    const models = `SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = 'read_models'`;
    assert.notEqual((await query(installation, models))[0]?.['n'], 0);
    await admin(installation, ['log', 'import', file]);
    assert.equal((await query(installation, models))[0]?.['n'], 0);
    for (const table of ['snapshots', 'vault_read_mark']) {
      assert.deepEqual(await query(installation, `SELECT FROM ${table}`), [], table);
    }
  });
});
