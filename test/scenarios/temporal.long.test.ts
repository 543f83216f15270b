/**
 * The service with its workflows on a real Temporal: what waits is carried out, an outage is waited out by everybody,
 * and whoever is killed, nothing is lost. With STRATA_TEMPORAL_OUTAGE_SECONDS=300 the outage is as long as a real one:
 * `node --test --test-name-pattern='while it is away' test/scenarios/temporal.long.test.ts`.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from 'node:tls';
import pg from 'pg';
import { WORKFLOWS } from '../../apps/server/workflows.ts';
import { createAuthority } from '../support/certificates.ts';
import { cleanUp } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { type TemporalServer, temporalServer } from '../support/temporal/server.ts';
import { tempDir } from '../support/temp-dir.ts';
import {
  answeringStatus,
  createWebhook,
  type ListedDelivery,
  listDeliveries,
  NO_CONTENT,
  receiverHouse,
  untilDeliveries,
} from '../support/webhook-receiver.ts';

const OUTAGE_MS = Number(process.env['STRATA_TEMPORAL_OUTAGE_SECONDS'] ?? '10') * 1_000;
/** For what is due to be carried out, after whatever was down has come back. */
const SPAN_MS = 90_000;
const FAILING = answeringStatus(503);

interface Session {
  readonly id: string;
  readonly user_code: string;
  readonly secret_token: string;
}

/** A service with an account, one webhook whose receiver fails first, and a work tree; Temporal is not started yet. */
async function newService(context: TestContext) {
  const temporal = await temporalServer(context);
  const shared = await sharedParts(context);
  const house = await receiverHouse(context);
  const start = (env: Readonly<Record<string, string>> = {}) =>
    startNode(context, shared, { ...house.env, ...temporal.env, ...env });
  return { temporal, shared, house, start };
}

async function newUser(context: TestContext, strata: Strata, house: Awaited<ReturnType<typeof receiverHouse>>) {
  const ada = await createAccount(strata, 'ada');
  // The creation and the push of a branch are told one after another: the first of them is to be made again.
  const receiver = await house.receiver(FAILING, NO_CONTENT);
  const webhook = await createWebhook(strata, ada, receiver.url);
  const remote = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  const push = () => git(work, ['push', '--quiet', remote, 'main']);
  return { ada, receiver, webhook, remote, work, push };
}

async function begin(strata: Strata): Promise<Session> {
  const answer = await api(strata, '', 'POST', '/v1/auth/sessions', { hostname: 'workbench' });
  assert.equal(answer.status, 201, answer.text);
  return answer.body as Session;
}

async function deny(strata: Strata): Promise<Session> {
  const session = await begin(strata);
  await admin(strata, ['device', 'deny', '--username', 'ada', '--code', session.user_code]);
  return session;
}

async function isClosed(shared: SharedParts, { id }: Session): Promise<boolean> {
  const events = await shared.log.since();
  return events.some(({ stream, type }) => stream === `deviceSession-${id}` && type === 'DeviceLoginClosed');
}

/** Resolves once it holds; a minute and a half is for machines that do much else. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + SPAN_MS; !(await holds()); await sleep(100)) {
    if (Date.now() > deadline) throw new Error(`Never came true: ${what}`);
  }
}

interface Ready {
  readonly status: number;
  readonly workflows: string | undefined;
}

async function readyz(strata: Strata): Promise<Ready> {
  const answer = await fetch(`${strata.url}/readyz`);
  const { parts } = (await answer.json()) as { readonly parts: Readonly<Record<string, string>> };
  return { status: answer.status, workflows: parts['workflows'] };
}

async function figure(strata: Strata, name: string): Promise<number> {
  const text = await (await fetch(`${strata.url}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

function linesOf(strata: Strata, message: string): number {
  return strata.log().split(`"msg":"${message}"`).length - 1;
}

const succeeded = (list: readonly ListedDelivery[]): boolean => list.every(({ status }) => status === 'SUCCESS');

describe('With workflows on Temporal', { ...needs('temporal'), concurrency: 2 }, () => {
  test('a failed delivery is made again and a login that ended is closed', async (context) => {
    const { temporal, shared, house, start } = await newService(context);
    await temporal.start();
    const strata = await start();
    const { ada, receiver, webhook, push } = await newUser(context, strata, house);
    await push();
    const session = await deny(strata);
    await until('the login is closed', () => isClosed(shared, session));
    await untilDeliveries(strata, ada, webhook.id, (list) => list.length === 2 && succeeded(list));
    assert.equal(receiver.received.length, 3);
    await until('it is ready', async () => (await readyz(strata)).workflows === 'ok');
    await until('it is reached', async () => (await figure(strata, 'strata_workflow_engine_reachable')) === 1);
    assert.ok((await figure(strata, 'strata_workflow_steps_total{workflow="device-login",outcome="done"}')) >= 1);
  });

  test('all of it goes through TLS, certificates on both ends and a key that is not logged', async (context) => {
    const { temporal, shared, start } = await newService(context);
    await temporal.start();
    const { env, connections } = await tlsBefore(context, temporal);
    const strata = await start(env);
    await createAccount(strata, 'ada');
    const session = await deny(strata);
    await until('the login is closed', () => isClosed(shared, session));
    // The client's, and the workers'.
    assert.ok(connections() >= 2);
    assert.ok(!strata.log().includes(env.STRATA_TEMPORAL_API_KEY));
  });

  test('git, REST and first attempts go on while it is away, and what waited is carried out once it is there', {
    timeout: OUTAGE_MS + 4 * SPAN_MS,
  }, async (context) => {
    const { temporal, shared, house, start } = await newService(context);
    const strata = await start();
    const { ada, receiver, webhook, remote, work, push } = await newUser(context, strata, house);
    await push();
    const session = await deny(strata);
    await receiver.until(2);
    const over = Date.now() + OUTAGE_MS;
    let rounds = 0;
    for (; Date.now() < over || rounds === 0; rounds += 1) {
      const commit = await commitFile(work, 'file', `round ${rounds}\n`);
      await push();
      await assertServes(context, strata, ada, remote, commit);
      assert.equal((await readyz(strata)).status, 200);
      await receiver.until(3 + rounds);
      await sleep(1_000);
    }
    await until('it is named as degraded', async () => (await readyz(strata)).workflows === 'degraded');
    assert.equal(await isClosed(shared, session), false);
    assert.equal(await figure(strata, 'strata_workflow_engine_reachable'), 0);
    assert.ok((await figure(strata, 'strata_workflow_overdue')) >= 1);
    assert.ok((await figure(strata, 'strata_workflow_oldest_overdue_seconds')) > 0);
    if (retriesWait()) assert.equal(await figure(strata, 'strata_webhook_deliveries_pending'), 1);
    assert.equal(linesOf(strata, 'Temporal cannot be reached: what waits is carried out once it can be'), 1);

    await temporal.start();
    const backAt = performance.now();
    await until('the login is closed', () => isClosed(shared, session));
    await until('all is delivered', async () => (await figure(strata, 'strata_webhook_deliveries_pending')) === 0);
    assert.ok(succeeded(await listDeliveries(strata, ada, webhook.id, '?limit=100')));
    const ids = receiver.received.map(({ headers }) => headers['x-service-delivery']);
    assert.deepEqual([ids.length, new Set(ids).size], [3 + rounds, 2 + rounds]);
    await until('it is ready', async () => (await readyz(strata)).workflows === 'ok');
    await until('nothing is overdue', async () => (await figure(strata, 'strata_workflow_overdue')) === 0);
    assert.ok(linesOf(strata, 'Temporal is reached') >= 1);
    const seconds = Math.round((performance.now() - backAt) / 1_000);
    context.diagnostic(`${rounds} pushes while it was away; nothing overdue ${seconds} s after it was back`);
  });

  for (const file of ['same', 'empty'] as const) {
    const what =
      file === 'same' ? 'a Temporal that is killed' : 'a Temporal that is killed and comes back knowing nothing';
    test(`${what} loses nothing of what waited`, { timeout: 4 * SPAN_MS }, async (context) => {
      const { temporal, shared, house, start } = await newService(context);
      await temporal.start();
      const strata = await start();
      const { ada, receiver, webhook, push } = await newUser(context, strata, house);
      await push();
      await receiver.until(2);
      // Between the first attempt and the second, which is eight seconds later; and before the token is written.
      const session = await claim(strata);
      await temporal.kill();
      const denied = await deny(strata);
      await until('it is named as degraded', async () => (await readyz(strata)).workflows === 'degraded');
      await temporal.start(file);
      for (const ended of [session, denied]) await until('the login is closed', () => isClosed(shared, ended));
      await untilDeliveries(strata, ada, webhook.id, (list) => list.length === 2 && succeeded(list), SPAN_MS);
      assert.equal(receiver.received.length, 3);
      await until('it is ready', async () => (await readyz(strata)).workflows === 'ok');
    });
  }

  test('a server killed in the middle of a step leaves it to the next', { timeout: 4 * SPAN_MS }, async (context) => {
    const { temporal, shared, start } = await newService(context);
    await temporal.start();
    const strata = await start();
    await createAccount(strata, 'ada');
    const session = await claim(strata);
    // Closing a login destroys its key first: held, the step stays in its middle.
    const [client, observer] = [await connectTo(context, shared), await connectTo(context, shared)];
    await client.query('BEGIN');
    const { rowCount } = await client.query('SELECT 1 FROM vault_keys WHERE account_id = $1 FOR UPDATE', [session.id]);
    assert.equal(rowCount, 1);
    await until('the step is in its middle', async () => {
      const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%vault_keys%'";
      return (await observer.query(`${waiting} AND datname = current_database()`)).rowCount === 1;
    });
    await strata.kill();
    await client.query('ROLLBACK');
    assert.equal(await isClosed(shared, session), false);
    const again = await strata.restart();
    await until('the login is closed', () => isClosed(shared, session));
    await until('it is ready', async () => (await readyz(again)).workflows === 'ok');
  });
});

async function connectTo(context: TestContext, { env }: SharedParts): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: env['STRATA_DATABASE_URL'] });
  await client.connect();
  cleanUp(context, () => client.end());
  return client;
}

/** A login that was granted and fetched; it is closed five seconds later. */
async function claim(strata: Strata): Promise<Session> {
  const session = await begin(strata);
  await admin(strata, ['device', 'grant', '--username', 'ada', '--code', session.user_code]);
  const polled = await api(
    strata,
    '',
    'GET',
    `/v1/auth/sessions/${session.id}/poll?secret_token=${session.secret_token}`,
  );
  assert.equal(polled.status, 200, polled.text);
  return session;
}

/** Lets through only who shows a certificate of the authority's, as a cluster of somebody's own does. */
async function tlsBefore(context: TestContext, { env }: TemporalServer) {
  const authority = createAuthority();
  const folder = await tempDir(context);
  const [server, client] = [authority.issue(['127.0.0.1']), authority.issue(['strata'])];
  const files = { ca: authority.cert, cert: client.cert, key: client.key };
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder, name), content);
  const [, port = ''] = env['STRATA_TEMPORAL_ADDRESS']?.split(':') ?? [];
  let connections = 0;
  const options = { ...server, ca: authority.cert, requestCert: true, ALPNProtocols: ['h2'] };
  const proxy = createServer(options, (socket) => {
    connections += 1;
    const upstream = connect(Number(port), '127.0.0.1');
    pipeline(socket, upstream, socket, () => undefined);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  cleanUp(context, () => proxy.close());
  return {
    connections: () => connections,
    env: {
      STRATA_TEMPORAL_ADDRESS: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      STRATA_TEMPORAL_TLS_CA: path.join(folder, 'ca'),
      STRATA_TEMPORAL_TLS_CERT: path.join(folder, 'cert'),
      STRATA_TEMPORAL_TLS_KEY: path.join(folder, 'key'),
      STRATA_TEMPORAL_API_KEY: 'the-key-of-the-scenario',
    },
  };
}

async function assertServes(
  context: TestContext,
  strata: Strata,
  ada: Account,
  remote: string,
  commit: string,
): Promise<void> {
  const clone = await tempDir(context);
  await git(clone, ['clone', '--quiet', remote, 'clone']);
  assert.equal((await git(`${clone}/clone`, ['rev-parse', 'HEAD'])).trim(), commit);
  const { body } = await api(strata, ada.token, 'GET', '/v1/repos/ada/engine/branches');
  assert.equal((body as { branches: { commit: { hexsha: string } }[] }).branches[0]?.commit.hexsha, commit);
}

function retriesWait(): boolean {
  return WORKFLOWS.some(({ name }) => name === 'webhook-delivery');
}
