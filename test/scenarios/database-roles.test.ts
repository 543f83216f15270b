/**
 * Servers whose database has two roles: the embedded one, made now or by an older version, and one of the operator's.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { type TestContext, test } from 'vitest';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { madeDataDir } from '../support/made-data-dir.ts';
import { testDatabase } from '../support/postgres.ts';
import {
  type Account,
  admin,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';

const NOT_ALLOWED = { code: '42501' };
const WARNING = 'can change and remove events';

async function run(connectionString: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Creates a repository and pushes to it; returns the work tree. */
async function pushFirst(context: TestContext, strata: Strata, ada: Account): Promise<string> {
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', await createRepository(strata, ada, 'engine'), 'main']);
  return work;
}

async function pushMore(strata: Strata, ada: Account, work: string): Promise<void> {
  const commit = await commitFile(work, 'more', `${randomBytes(8).toString('hex')}\n`);
  const url = gitUrl(strata, ada, 'engine');
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal(await git(work, ['ls-remote', url, 'main']), `${commit}\trefs/heads/main\n`);
}

/** What needs more than reading and appending. */
async function administer(strata: Strata): Promise<void> {
  const rebuilt = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
    projections: { differences: number }[];
  };
  assert.ok(rebuilt.projections.every(({ differences }) => differences === 0));
  await admin(strata, ['storage', 'expire']);
  const { faults } = (await admin(strata, ['log', 'verify', '--references'])) as { faults: string[] };
  assert.deepEqual(faults, []);
}

/** Makes the database what a version before the two roles left: one role owns everything. */
const ONE_ROLE = `
  DROP TABLE rate_sums, master_keys, webhook_budgets, webhook_waiting_pushes, webhook_notified_pushes, device_login_changes,
    device_login_networks, read_leases, database_life, webhook_body_sums, webhook_waiting_deliveries;
  DROP FUNCTION append_events(json), append_events_leased(json, text), take_read_lease(text, integer), ensure_database_life(),
    take_webhook_budget(uuid, text[], integer, integer), count_device_login_changes();
  DROP FUNCTION note_device_login_change() CASCADE;
  DROP FUNCTION count_webhook_payloads_insert(), count_webhook_payloads_delete(), count_webhook_answers_insert(),
    count_webhook_answers_update(), count_webhook_answers_delete() CASCADE;
  ALTER TABLE webhook_answers DROP COLUMN event_id;
  DROP INDEX device_login_requests_pending, device_login_requests_expiring;
  CREATE INDEX device_login_requests_pending ON device_login_requests (network);
  ALTER TABLE device_login_requests DROP COLUMN is_counted;
  ALTER TABLE vault_keys DROP COLUMN master_key_id, DROP COLUMN rotations;
  ALTER TABLE signing_keys DROP COLUMN master_key_id;
  ALTER TABLE log_keys DROP COLUMN master_key_id;
  ALTER FUNCTION append_events_locked(json) RENAME TO append_events;
  REASSIGN OWNED BY strata_server TO strata;
  DROP OWNED BY strata_server;
  DROP ROLE strata_server;
  ALTER FUNCTION append_events(json) SECURITY INVOKER RESET search_path;
  ALTER FUNCTION prune_stream(text, integer, text) SECURITY INVOKER RESET search_path;
  GRANT EXECUTE ON FUNCTION append_events(json), prune_stream(text, integer, text) TO PUBLIC;
  DROP TABLE log_migration_kinds, running_processes, verification_walks, written_events, bucket_findings;
  DELETE FROM log_migrations WHERE name >= '020'`;

test('the embedded database has both roles from its first start, and an older one gets them, killed servers or not', async (context) => {
  const dataDir = await madeDataDir(context);
  const first = await startStrata(context, { dataDir, log: 'postgres' });
  const ada = await createAccount(first, 'ada');
  const work = await pushFirst(context, first, ada);
  const file = path.join(dataDir, 'postgres/connection');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const [serving = '', owner = ''] = (await readFile(file, 'utf8')).split('\n');
  await assert.rejects(run(serving, 'DELETE FROM events'), NOT_ALLOWED);
  await run(owner, 'CREATE TABLE made_by_the_owner (n int)');
  await first.kill();

  const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings: { fsync: 'off' } });
  const { ownerConnectionString } = embedded;
  await run(ownerConnectionString, ONE_ROLE);
  await embedded.stop();
  await writeFile(file, ownerConnectionString);
  // It is killed when it has made the role, and nothing else.
  const half = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog(), settings: { fsync: 'off' } });
  process.kill(half.pid() ?? 0, 'SIGKILL');
  await half.stop();

  const changed = await startStrata(context, { dataDir, log: 'postgres' });
  await pushMore(changed, ada, work);
  const [again = ''] = (await readFile(file, 'utf8')).split('\n');
  await assert.rejects(run(again, 'UPDATE events SET position = position'), NOT_ALLOWED);
  // A command beside the server reads both roles from the server's file.
  await admin(changed, ['projections', 'rebuild']);
  assert.ok(!`${first.log()}${changed.log()}`.includes(WARNING));
});

test('a database of the operator’s own, whose owner is no superuser, works with both roles', async (context) => {
  const server = await testDatabase();
  cleanUp(context, () => server.close());
  const [owner, serving] = ['owner', 'server'].map((name) => `strata_test_${name}_${randomBytes(4).toString('hex')}`);
  // These are the steps of docs/operating.md.
  for (const text of [
    `CREATE ROLE ${owner} LOGIN PASSWORD 'no-secret'`,
    `CREATE ROLE ${serving} LOGIN PASSWORD 'no-secret'`,
    `GRANT ${serving} TO ${owner}`,
    `CREATE DATABASE ${owner} OWNER ${owner} ENCODING UTF8 TEMPLATE template0`,
  ]) {
    await run(server.connectionString, text);
  }
  cleanUp(context, async () => {
    await run(server.connectionString, `DROP DATABASE ${owner} WITH (FORCE)`);
    await run(server.connectionString, `DROP ROLE ${owner}, ${serving}`);
  });
  const address = (role = '') => {
    const url = new URL(server.connectionString);
    [url.username, url.password, url.pathname] = [role, 'no-secret', `/${owner}`];
    return url.href;
  };
  const urls = { STRATA_DATABASE_URL: address(serving), STRATA_DATABASE_OWNER_URL: address(owner) };
  const strata = await startStrata(context, { log: 'postgres', env: urls });
  const ada = await createAccount(strata, 'ada');
  const work = await pushFirst(context, strata, ada);
  await administer(strata);
  await assert.rejects(run(address(serving), 'TRUNCATE events'), NOT_ALLOWED);
  assert.ok(!strata.log().includes(WARNING));

  // There was one role before: a server that serves as the owner works, and says what is missing.
  await strata.stop();
  const env = { STRATA_DATABASE_URL: address(owner) };
  const mighty = await startStrata(context, { dataDir: strata.dataDir, log: 'postgres', env });
  await pushMore(mighty, ada, work);
  assert.equal(mighty.log().split(WARNING).length, 2);
  assert.ok(!mighty.log().includes('no-secret'));
});
