/** Real processes on one log say in rows of their own what they read, so that a newer version knows who runs. */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { test } from 'vitest';
import { READ_EVENTS } from '../../core/catalogue.ts';
import { cleanUp } from '../support/cleanup.ts';
import { until } from '../support/read-models.ts';
import { admin } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

test('servers and commands have a row each while they run, with the events and models that they read', async (context) => {
  const shared = await sharedParts(context);
  const [first, second] = await Promise.all([startNode(context, shared), startNode(context, shared)]);
  const client = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  cleanUp(context, () => client.end());
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
