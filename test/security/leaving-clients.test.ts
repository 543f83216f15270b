/** Clients that disconnect while the server waits for another part: the request ends, the server keeps running. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import pg from 'pg';
import { beforeAll, describe, test } from 'vitest';
import { cleanUp, type Ending, suiteEnding } from '../support/cleanup.ts';
import { basicAuthorization, commandList, commit, pack, type WireTarget, wirePush } from '../support/git-wire.ts';
import { leftovers } from '../support/leftovers.ts';
import { eventually } from '../support/processes.ts';
import { type Account, api, createAccount, createRepository, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

const MAIN = 'refs/heads/main';

describe('A client that disconnects', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;
  let target: WireTarget;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada', 'FREE');
    target = { strata, account: ada, name: 'hello' };
    await createRepository(strata, ada, target.name);
    // The first read of a read model queries its live generation separately; this request makes that query now.
    assert.equal((await api(strata, ada.token, 'GET', '/v1/account/usage')).status, 200);
  });

  /** A connection to the server's database, whose locks hold back the server's queries. */
  async function database(context: Ending): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
    await client.connect();
    cleanUp(context, () => client.end());
    return client;
  }

  async function liveTable(client: pg.Client, name: string): Promise<string> {
    const text = `SELECT format('%I.%I', schemaname, tablename) AS found FROM pg_tables WHERE tablename LIKE $1 || '_v%'`;
    const { rows } = await client.query<{ found: string }>(text, [name]);
    return rows[0]?.found ?? assert.fail(`There is no table of ${name}`);
  }

  /** Sends a push without the last bytes of its pack. */
  async function beginPush(): Promise<Socket> {
    const next = commit('never whole');
    const body = Buffer.concat([commandList([{ ref: MAIN, after: next.id }]), pack([next])]);
    const socket = connect(Number(new URL(strata.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    const head = [
      `POST /r/ada/${target.name}.git/git-receive-pack HTTP/1.1`,
      ...['Host: localhost', `Authorization: ${basicAuthorization(ada)}`],
      ...['Content-Type: application/x-git-receive-pack-request', `Content-Length: ${body.length}`],
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(body.subarray(0, body.length - 10));
    return socket;
  }

  test('while the server reads a quota leaves the server running', async (context) => {
    // The attack: anyone with a free account sends a push of 360 bytes and disconnects before the server has read the
    // account's usage from the database. The end of the body was a rejection without a handler, which ends a Node
    // process: two to four such requests stopped the service for all users.
    const client = await database(context);
    const watching = await database(context);
    // The quota of changes, which a push is refused by before anything else, and those of bytes.
    for (const [attempt, model] of ['changes_months', 'usage_traffic', 'changes_months', 'usage_traffic'].entries()) {
      const table = await liveTable(watching, model);
      await client.query('BEGIN');
      await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
      const socket = await beginPush();
      await eventually('the server queries the quota', async () => {
        const { rowCount } = await watching.query(
          `SELECT FROM pg_stat_activity JOIN pg_locks USING (pid)
           WHERE NOT granted AND relation = $1::regclass AND query LIKE 'SELECT live_generation%'`,
          [table],
        );
        return rowCount !== 0;
      });
      socket.destroy();
      // With this answer the server has also noticed the end of the connection, before its query returns.
      const health = await fetch(`${strata.url}/healthz`);
      assert.equal(health.status, 200);
      await client.query('ROLLBACK');
      await eventually('the request has ended', () => strata.log().split('"operation":"push"').length > attempt + 1);
    }
    assert.doesNotMatch(strata.log(), /Unhandled|triggerUncaughtException|Error: aborted/);
    assert.equal(strata.process.exitCode, null);
    assert.deepEqual(await leftovers(strata), []);
    const tip = commit('whole');
    const pushed = await wirePush(target, [{ ref: MAIN, after: tip.id }], [tip]);
    assert.equal(pushed.refs.get(MAIN), 'ok', pushed.remote);
  });
});
