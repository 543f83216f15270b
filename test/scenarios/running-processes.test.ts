/** Real processes on one log say in rows of their own what they read, so that a newer version knows who runs. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { test } from 'vitest';
import { READ_EVENTS } from '../../core/catalogue.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { until } from '../support/read-models.ts';
import { admin, api, createAccount, createRepository, tryAdmin } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

async function connect(context: Ending, { env }: SharedParts): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  cleanUp(context, () => client.end());
  return client;
}

/** Leaves the database as if only a version had run on it that reads neither version 4 nor renames. */
async function runOlder(client: pg.Client): Promise<void> {
  const { RepositoryRenamed: _, ...known } = READ_EVENTS;
  const older = JSON.stringify({ ...known, TransferRecorded: 3 });
  await client.query(`
    DELETE FROM running_processes;
    DELETE FROM written_events WHERE type = 'RepositoryRenamed';
    UPDATE written_events SET version = 3 WHERE type = 'TransferRecorded'`);
  await client.query(`INSERT INTO running_processes VALUES (gen_random_uuid(), $1, '{}', now())`, [older]);
}

async function writtenOf(client: pg.Client, type: string): Promise<unknown> {
  return (await client.query('SELECT version FROM written_events WHERE type = $1', [type])).rows[0]?.version;
}

test('servers and commands have a row each while they run, with the events and models that they read', async (context) => {
  const shared = await sharedParts(context);
  const [first, second] = await Promise.all([startNode(context, shared), startNode(context, shared)]);
  const client = await connect(context, shared);
  const rows = async () =>
    (
      await client.query<{ events: unknown; models: unknown }>(
        'SELECT events, models FROM running_processes WHERE NOT ended',
      )
    ).rows;
  const live = 'SELECT json_object_agg(name, version) AS models FROM read_models.projections';
  // Each model makes its first generation by itself.
  await until(async () => {
    const { models } = (await client.query<{ models: unknown }>(live)).rows[0] ?? {};
    const expected = { events: READ_EVENTS, models };
    return isDeepStrictEqual(await rows(), [expected, expected]);
  });
  await client.query(`
    CREATE TABLE seen AS SELECT id FROM running_processes;
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      AS 'BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NEW; END';
    CREATE TRIGGER note AFTER INSERT ON running_processes FOR EACH ROW EXECUTE FUNCTION note()`);
  await admin(first, ['storage', 'list']);
  assert.equal((await client.query('SELECT DISTINCT id FROM seen')).rowCount, 3);
  assert.equal((await rows()).length, 2);
  assert.deepEqual(await admin(first, ['upgrade', 'finish']), { written: [] });
  await first.stop();
  assert.equal((await rows()).length, 1);
  // A killed process stays listed, since nobody knows whether it still runs.
  await second.kill();
  assert.equal((await rows()).length, 1);
});

test('a server writes what a process of an older version reads, until the operator finishes the upgrade', async (context) => {
  const shared = await sharedParts(context);
  const first = await startNode(context, shared);
  const client = await connect(context, shared);
  const written = () => writtenOf(client, 'TransferRecorded');
  const newest = READ_EVENTS['TransferRecorded'];
  assert.equal(await written(), newest, 'a new service writes the newest version');
  await first.stop();
  await runOlder(client);
  const second = await startNode(context, shared);
  assert.equal(await written(), 3);
  const refused = await tryAdmin(second, ['upgrade', 'finish']);
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    new RegExp(`ten minutes: 1\\n.*\\n- RepositoryRenamed .* 1\\n- Transfer.* ${newest}\\n.*--yes`),
  );
  assert.equal(await written(), 3);
  const raised = ['RepositoryRenamed', 'TransferRecorded'].map((type) => ({ type, version: READ_EVENTS[type] }));
  assert.deepEqual(await admin(second, ['upgrade', 'finish', '--yes']), { written: raised });
  assert.equal(await written(), newest);
});

test('a rename is refused, and says why, while a process may run that does not know renames', async (context) => {
  const shared = await sharedParts(context);
  const first = await startNode(context, shared);
  const ada = await createAccount(first, 'ada');
  await createRepository(first, ada, 'tools');
  await first.stop();
  await runOlder(await connect(context, shared));
  const second = await startNode(context, shared);
  const changes = { name: 'kit', description: 'Renamed' };
  const refused = await api(second, ada.token, 'PATCH', '/v1/repos/ada/tools', changes);
  assert.equal(refused.status, 409);
  assert.match(refused.text, /Try again in ten minutes; .*`strata-admin upgrade finish`/);
  const read = await api(second, ada.token, 'GET', '/v1/repos/ada/tools');
  assert.match(read.text, /"description":null/, 'nothing of a refused request is done');
  const described = await api(second, ada.token, 'PATCH', '/v1/repos/ada/tools', { description: 'Tools' });
  assert.equal(described.status, 200);
  await admin(second, ['upgrade', 'finish', '--yes']);
  await second.stop();
  // It has what is written from its start on, and need not be waited for.
  const third = await startNode(context, shared);
  assert.equal((await api(third, ada.token, 'PATCH', '/v1/repos/ada/tools', changes)).status, 200);
});

test('an imported log is written in the newest versions, which the file may hold, whoever ran before', async (context) => {
  const shared = await sharedParts(context);
  const source = await startNode(context, shared);
  const file = path.join(await tempDir(context), 'whole.log');
  await admin(source, ['log', 'export', file]);
  const target = await sharedParts(context);
  const env = { ...source.env, ...target.env, STRATA_DATA_DIR: await tempDir(context) };
  await admin({ env }, ['storage', 'list']);
  const client = await connect(context, target);
  await runOlder(client);
  await client.end();
  await admin({ env }, ['log', 'import', file]);
  assert.equal(await writtenOf(await connect(context, target), 'TransferRecorded'), READ_EVENTS['TransferRecorded']);
});
