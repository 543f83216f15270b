/** Who administers: the account's own log says who typed a command of `strata-admin`, and on which host. */
import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import pg from 'pg';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { type Account, admin, api, createAccount, createAccountByCommand, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Page {
  readonly events: readonly {
    readonly entry: { readonly type: string; readonly source_address_ref: string | null };
    readonly openings: Readonly<Record<string, { readonly value: string }>>;
  }[];
}

describe('An operator who changes an account', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
  });

  /** The types of the entries that the command caused, each with who typed it. */
  async function causedBy(account: Account, command: string): Promise<readonly (readonly [string, string | null])[]> {
    const target = `/v1/account/events?actor_id=${encodeURIComponent(command)}`;
    const { body, status } = await api(strata, account.token, 'GET', target);
    assert.equal(status, 200);
    return (body as Page).events.map(({ entry: { type, source_address_ref: ref }, openings }) => [
      type,
      ref === null ? null : (openings[ref]?.value ?? null),
    ]);
  }

  test('is named in its log, by --as or as the system names its user', async () => {
    const ada = await createAccount(strata, 'ada');
    await admin(strata, ['account', 'set-plan', '--username', 'ada', '--plan', 'PRO', '--as', 'Grace Hopper']);
    await admin(strata, ['--as', 'ops', 'account', 'set-plan', '--username', 'ada', '--plan', 'FREE']);
    await admin(strata, ['account', 'set-plan', '--username', 'ada', '--plan', 'PRO']);
    assert.deepEqual(await causedBy(ada, 'account set-plan'), [
      ['PlanChanged', `Grace Hopper@${hostname()}`],
      ['PlanChanged', `ops@${hostname()}`],
      ['PlanChanged', `${userInfo().username}@${hostname()}`],
    ]);
    for (const event of await shared.log.since()) {
      const text = JSON.stringify({ ...event, position: null });
      assert.ok(!text.includes('Grace Hopper'), 'the log holds a reference, and no name');
    }
  });

  test('is named by the creation of an account, and of its tokens', async () => {
    const bob = await createAccountByCommand(strata, 'bob');
    const who = `${userInfo().username}@${hostname()}`;
    const created = await causedBy(bob, 'account create');
    // The claims of its name and address come before it, when it has no vault record yet.
    assert.deepEqual(created.slice(0, 3), [
      ['Claimed', null],
      ['Claimed', null],
      ['AccountCreated', who],
    ]);
    assert.deepEqual(await causedBy(bob, 'token create'), [['AccessTokenCreated', who]]);
  });

  test('is not named any more after the account is erased', async () => {
    const eve = await createAccount(strata, 'eve');
    await admin(strata, ['account', 'set-plan', '--username', 'eve', '--plan', 'PRO', '--as', 'Grace Hopper']);
    assert.deepEqual(await causedBy(eve, 'account set-plan'), [['PlanChanged', `Grace Hopper@${hostname()}`]]);
    await admin(strata, ['account', 'erase', '--username', 'eve', '--yes', '--as', 'Grace Hopper']);
    const database = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
    await database.connect();
    const { rows } = await database.query('SELECT ref FROM vault_records WHERE account_id = $1', [eve.id]);
    await database.end();
    assert.deepEqual(rows, []);
    const verified = (await admin(strata, ['log', 'verify', '--references'])) as { readonly faults: readonly string[] };
    assert.deepEqual(verified.faults, []);
  });
});
