/** How a server divides its connections to PostgreSQL, and how many commands need. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import {
  DATABASE_CONNECTIONS_DEFAULT,
  DATABASE_CONNECTIONS_MIN,
  MODEL_LEADS,
  sharesOf,
} from '../../../apps/server/database-connections.ts';
import { WORKFLOWS } from '../../../apps/server/workflows.ts';
import { createModels } from '../../../projections/models.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { createAccount, createRepository, git, newWorkTree, tryAdmin } from '../../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../../support/strata-on-postgres.ts';

const LISTENERS = 2;

/** Bounds the connections to the service's database. */
async function limitConnections(ending: Ending, { env }: SharedParts, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  cleanUp(ending, () => client.end());
  const { rows } = await client.query<{ name: string }>('SELECT current_database() AS name');
  // This connection counts as well.
  await client.query(`ALTER DATABASE ${rows[0]?.name} CONNECTION LIMIT ${count + 1}`);
}

describe('The connections of a server', () => {
  test('are never more than the setting says, and each part has one', () => {
    for (let most = DATABASE_CONNECTIONS_MIN; most < 100; most += 1) {
      for (const isWorker of [true, false]) {
        const shares = Object.values(sharesOf(most, isWorker));
        const webhooks = isWorker ? 1 : 0;
        const sum = shares.reduce((all, share) => all + share, 0) + LISTENERS + webhooks;
        assert.equal(sum, most);
        assert.ok(shares.every((share) => share > 0));
      }
    }
  });

  test('are as many by default as each part can use', () => {
    const expected = { appends: 2, reads: 6, leases: 2, models: 15, work: 10 };
    assert.deepEqual(sharesOf(DATABASE_CONNECTIONS_DEFAULT, true), expected);
  });

  test('suffice for all read models', () => {
    const objects = { open: async () => assert.fail('no repository is read') };
    const events = createMemoryEventStore();
    const models = createModels({ objects, events, complete: async (event) => event, workflows: WORKFLOWS, digest });
    assert.equal(Object.keys(models).length, MODEL_LEADS);
  });

  test('are twenty where the operator says so, and pushes and commands work', async (context) => {
    const shared = await sharedParts(context);
    await limitConnections(context, shared, DATABASE_CONNECTIONS_MIN + 2);
    const most = String(DATABASE_CONNECTIONS_MIN);
    const strata = await startNode(context, shared, { STRATA_DATABASE_CONNECTIONS_MAX: most });
    const ada = await createAccount(strata, 'ada');
    const remote = await createRepository(strata, ada, 'engine');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', remote, 'main']);
    assert.doesNotMatch(strata.log(), /too many connections/);
    const listed = await Promise.all([1, 2, 3, 4].map(() => tryAdmin(strata, ['storage', 'list'])));
    for (const { code, stdout, stderr } of listed) {
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^ada\/engine: 1 layers/);
    }
  });
});
