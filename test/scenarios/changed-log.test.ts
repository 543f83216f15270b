/**
 * `log verify` on a database that somebody changed behind the service's back. Each attack is a statement of who holds
 * the password of the database's owner, with the read model of trees at hand as well.
 */
import assert from 'node:assert/strict';
import pg from 'pg';
import { beforeAll, describe, test } from 'vitest';
import type { LogReport } from '../../apps/admin/verify-log.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { type Account, admin, createAccount, createRepository, type Strata, tryAdmin } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

describe('A log that was changed in the database', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let database: pg.Client;

  beforeAll(async () => {
    // The changes are made in PostgreSQL's own table of events.
    const shared = await sharedParts(ending, 'postgres');
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
    for (const name of ['one', 'two', 'three']) await createRepository(strata, ada, name);
    // Signs the log, so that the checkpoint lies in the layer store.
    const signed = await fetch(`${strata.url}/v1/account/checkpoints/latest`, {
      headers: { authorization: `Bearer ${ada.token}` },
    });
    assert.equal(signed.status, 200);
    // What it appended while the table is put back would be lost.
    await strata.stop();
    database = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
    await database.connect();
    cleanUp(ending, () => database.end());
  });

  async function faults(): Promise<readonly string[]> {
    const { stdout } = await tryAdmin(strata, ['--json', 'log', 'verify']);
    return (JSON.parse(stdout) as LogReport).faults;
  }

  /** Runs the statement, verifies the log, and puts the table back. */
  async function faultsAfter(statement: string, next = async () => {}): Promise<readonly string[]> {
    return resultAfter(statement, async () => {
      await next();
      return faults();
    });
  }

  async function resultAfter<Result>(statement: string, verify: () => Promise<Result>): Promise<Result> {
    await database.query('CREATE TABLE kept AS SELECT * FROM events');
    try {
      await database.query(statement);
      return await verify();
    } finally {
      await database.query('DELETE FROM events');
      await database.query('INSERT INTO events SELECT * FROM kept');
      await database.query('DROP TABLE kept');
    }
  }

  test('unchanged, has no fault', async () => {
    assert.deepEqual(await faults(), []);
  });

  test('is told once for each account by a round of the verification in the background', async () => {
    const once = () => tryAdmin(strata, ['log', 'verify', '--background-once']);
    assert.deepEqual(await once().then(({ code, stdout }) => [code, stdout]), [
      0,
      'No fault in the log, the vault and the layers\n',
    ]);
    const { rows } = await database.query(
      'SELECT walk FROM verification_walks WHERE whole_since IS NOT NULL ORDER BY 1',
    );
    assert.deepEqual(rows, [{ walk: 'month' }, { walk: 'week' }]);
    const changed = await resultAfter(`UPDATE events SET actor_id = 'x' WHERE type = 'RepositoryCreated'`, once);
    assert.equal(changed.code, 1);
    assert.match(changed.stdout, /^account [0-9a-f-]{36}: account-.* was changed after it was recorded\n$/);
    assert.equal(changed.stderr.match(/The verification found a fault/g)?.length, 1);
  });

  test("names the event whose data was changed: a token's expiry", async () => {
    const found = await faultsAfter(
      `UPDATE events SET data = replace(data, '"expires_at":null', '"expires_at":"2099-01-01T00:00:00.000Z"')
       WHERE type = 'AccessTokenCreated'`,
    );
    assert.match(
      found[0] ?? '',
      /^accessToken-[0-9a-f-]{36} revision 0 \(event [0-9a-f-]{36}\) was changed after it was recorded$/,
    );
    assert.ok(
      found.some((line) => line.includes(`account ${ada.id} was signed with`)),
      'the checkpoint says so too',
    );
  });

  test('names the event whose envelope was changed, or that was taken from its account', async () => {
    const late = await faultsAfter(
      `UPDATE events SET actor_id = 'somebody-else' WHERE type = 'RepositoryCreated' AND data LIKE '%"two"%'`,
    );
    assert.match(late[0] ?? '', /^account-.* revision \d+ \(event .*\) was changed after it was recorded$/);
    const taken = await faultsAfter(
      `UPDATE events SET is_record = false WHERE type = 'RepositoryCreated' AND data LIKE '%"two"%'`,
    );
    assert.match(taken[0] ?? '', /was taken out of the log of account/);
  });

  test('names a row that is not even JSON, and goes on behind it', async () => {
    const found = await faultsAfter(
      `UPDATE events SET data = '{"broken' WHERE type = 'RepositoryCreated' AND data LIKE '%"two"%'`,
    );
    assert.match(found.join('\n'), /account-.* revision \d+ at position \d+ cannot be read/);
    assert.match(found.join('\n'), /account-.* revision \d+ \(event .*\) cannot be read/);
  });

  test('finds what a tree that was made again over the changed log hides, by the checkpoint in the layer store', async () => {
    const found = await faultsAfter(
      `UPDATE events SET request_id = 'forged' WHERE type = 'AccountCreated'`,
      async () => {
        await admin(strata, ['projections', 'rebuild']);
      },
    );
    assert.ok(
      found.some((line) => line.startsWith(`The log of account ${ada.id} was signed with`)),
      found.join('\n'),
    );
  });
});
