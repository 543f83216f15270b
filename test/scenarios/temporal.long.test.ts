/**
 * The service with its workflows on a real Temporal server: due steps are carried out, the service works through an
 * outage, and nothing is lost when either server is killed. STRATA_TEMPORAL_OUTAGE_SECONDS=300 makes the outage as long
 * as a real one: `npm run test:long -- scenarios/temporal -t 'while it is away'`.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from 'node:tls';
import pg from 'pg';
import { describe, type TestContext, test } from 'vitest';
import { WORKFLOWS } from '../../apps/server/workflows.ts';
import { LAYERS_AT_REST_MAX } from '../../core/repository/compaction.ts';
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
import { tempDir } from '../support/temp-dir.ts';
import { type TemporalServer, temporalServer } from '../support/temporal/server.ts';
import {
  answeringStatus,
  createWebhook,
  type ListedDelivery,
  listDeliveries,
  NO_CONTENT,
  untilDeliveries,
  webhookReceivers,
} from '../support/webhook-receiver.ts';
import { isInBucketAlone } from './bucket-crash.ts';

const OUTAGE_MS = Number(process.env['STRATA_TEMPORAL_OUTAGE_SECONDS'] ?? '10') * 1_000;
/** The time within which due work must be carried out after everything runs again. */
const SPAN_MS = 90_000;
/** Workers are created within the first seconds of a server; a stop is tried at each of these moments. */
const STOPPED_AFTER_MS_MAX = 3_000;
const STOPPED_AFTER_STEP_MS = 250;
/** Longer than the server gives itself, a minute, before it ends with another code: see apps/server/main.ts. */
const STOP_MS_MAX = 75_000;
const FAILING = answeringStatus(503);

interface Session {
  readonly id: string;
  readonly user_code: string;
  readonly secret_token: string;
}

/** A service whose Temporal server and nodes are not started yet, and the receivers of its webhooks. */
async function newService(context: TestContext) {
  const temporal = await temporalServer(context);
  const shared = await sharedParts(context);
  const receivers = await webhookReceivers(context);
  const start = (env: Readonly<Record<string, string>> = {}) =>
    startNode(context, shared, { ...receivers.env, ...temporal.env, ...env });
  return { temporal, shared, receivers, start };
}

async function newUser(context: TestContext, strata: Strata, receivers: Awaited<ReturnType<typeof webhookReceivers>>) {
  const ada = await createAccount(strata, 'ada');
  // The creation and the push of a branch are delivered one after the other; the first delivery fails once.
  const receiver = await receivers.start(FAILING, NO_CONTENT);
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

/** Resolves when the condition holds. The limit of 90 seconds allows for busy machines. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + SPAN_MS; !(await holds()); await sleep(100)) {
    if (Date.now() > deadline) throw new Error(`Did not happen in time: ${what}`);
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

describe('With workflows on Temporal', { ...needs('temporal'), concurrent: true }, () => {
  test('a failed delivery is retried and a login that ended is closed', async (context) => {
    const { temporal, shared, receivers, start } = await newService(context);
    await temporal.start();
    const strata = await start();
    const { ada, receiver, webhook, push } = await newUser(context, strata, receivers);
    await push();
    const session = await deny(strata);
    await until('the login is closed', () => isClosed(shared, session));
    await untilDeliveries(strata, ada, webhook.id, (list) => list.length === 2 && succeeded(list));
    assert.equal(receiver.received.length, 3);
    await until('workflows are ready', async () => (await readyz(strata)).workflows === 'ok');
    await until('Temporal is reachable', async () => (await figure(strata, 'strata_workflow_engine_reachable')) === 1);
    assert.ok((await figure(strata, 'strata_workflow_steps_total{workflow="device-login",outcome="done"}')) >= 1);
  });

  test('layers are compacted, and the manifest follows: they alone are the repository', {
    timeout: 4 * SPAN_MS,
  }, async (context) => {
    const { temporal, shared, start } = await newService(context);
    await temporal.start();
    const strata = await start();
    const account = await createAccount(strata, 'ada');
    const remote = await createRepository(strata, account, 'engine');
    const work = await newWorkTree(context);
    for (let n = 0; n <= LAYERS_AT_REST_MAX; n += 1) {
      await commitFile(work, 'file', `${n}\n`);
      await git(work, ['push', '--quiet', remote, 'main']);
    }
    await until('the layers are compacted', async () =>
      (await shared.log.since()).some(({ type }) => type === 'LayersCompacted'),
    );
    const store = { folder: shared.layersDir, log: shared.log };
    const create = (): Promise<string> => Promise.resolve(remote);
    await isInBucketAlone({ ...store, nodes: [strata], account, create, ending: context });
    for (const workflow of ['layer-compaction', 'manifest-writing']) {
      assert.ok((await figure(strata, `strata_workflow_steps_total{workflow="${workflow}",outcome="done"}`)) >= 1);
    }
  });

  test('every connection uses TLS with certificates on both ends, and an API key that is not logged', async (context) => {
    const { temporal, shared, start } = await newService(context);
    await temporal.start();
    const { env, connections } = await tlsBefore(context, temporal);
    const strata = await start(env);
    await createAccount(strata, 'ada');
    const session = await deny(strata);
    await until('the login is closed', () => isClosed(shared, session));
    // One connection of the client, and one of the workers.
    assert.ok(connections() >= 2);
    assert.ok(!strata.log().includes(env.STRATA_TEMPORAL_API_KEY));
  });

  test('git, REST and first attempts work while it is away, and overdue steps run when it is back', {
    timeout: OUTAGE_MS + 4 * SPAN_MS,
  }, async (context) => {
    const { temporal, shared, receivers, start } = await newService(context);
    const strata = await start();
    const { ada, receiver, webhook, remote, work, push } = await newUser(context, strata, receivers);
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
    await until('workflows are reported as degraded', async () => (await readyz(strata)).workflows === 'degraded');
    assert.equal(await isClosed(shared, session), false);
    assert.equal(await figure(strata, 'strata_workflow_engine_reachable'), 0);
    assert.ok((await figure(strata, 'strata_workflow_overdue')) >= 1);
    assert.ok((await figure(strata, 'strata_workflow_oldest_overdue_seconds')) > 0);
    if (retriesWait()) assert.equal(await figure(strata, 'strata_webhook_deliveries_pending'), 1);
    assert.equal(linesOf(strata, 'Temporal cannot be reached: due steps are carried out when it answers again'), 1);

    await temporal.start();
    const backAt = performance.now();
    await until('the login is closed', () => isClosed(shared, session));
    await until('all is delivered', async () => (await figure(strata, 'strata_webhook_deliveries_pending')) === 0);
    assert.ok(succeeded(await listDeliveries(strata, ada, webhook.id, '?limit=100')));
    const ids = receiver.received.map(({ headers }) => headers['x-service-delivery']);
    assert.deepEqual([ids.length, new Set(ids).size], [3 + rounds, 2 + rounds]);
    await until('workflows are ready', async () => (await readyz(strata)).workflows === 'ok');
    await until('nothing is overdue', async () => (await figure(strata, 'strata_workflow_overdue')) === 0);
    assert.ok(linesOf(strata, 'Temporal is reached') >= 1);
    const seconds = Math.round((performance.now() - backAt) / 1_000);
    await context.annotate(`${rounds} pushes while it was away; nothing overdue ${seconds} s after it was back`);
  });

  for (const file of ['same', 'empty'] as const) {
    const what = file === 'same' ? 'a Temporal that is killed' : 'a Temporal that is killed and comes back empty';
    test(`${what} loses no waiting step`, { timeout: 4 * SPAN_MS }, async (context) => {
      const { temporal, shared, receivers, start } = await newService(context);
      await temporal.start();
      const strata = await start();
      const { ada, receiver, webhook, push } = await newUser(context, strata, receivers);
      await push();
      await receiver.until(2);
      // Now is between the first attempt and the second, eight seconds later, and before the token's event is written.
      const session = await claim(strata);
      await temporal.kill();
      const denied = await deny(strata);
      await until('workflows are reported as degraded', async () => (await readyz(strata)).workflows === 'degraded');
      await temporal.start(file);
      for (const ended of [session, denied]) await until('the login is closed', () => isClosed(shared, ended));
      await untilDeliveries(strata, ada, webhook.id, (list) => list.length === 2 && succeeded(list), SPAN_MS);
      assert.equal(receiver.received.length, 3);
      await until('workflows are ready', async () => (await readyz(strata)).workflows === 'ok');
    });
  }

  test('a server that is told to stop while its workers are being created ends', {
    timeout: 8 * SPAN_MS,
  }, async (context) => {
    const { temporal, start } = await newService(context);
    await temporal.start();
    let strata = await start();
    for (let ms = 0; ms <= STOPPED_AFTER_MS_MAX; ms += STOPPED_AFTER_STEP_MS) {
      await sleep(ms);
      const stopping = strata.stop();
      const code = await Promise.race([stopping, sleep(STOP_MS_MAX, 'runs', { ref: false })]);
      assert.equal(code, 0, `told to stop ${ms} ms after it was ready:\n${strata.log()}`);
      strata = await strata.restart();
    }
  });

  test('a step whose server is killed in the middle runs again on the next server', {
    timeout: 4 * SPAN_MS,
  }, async (context) => {
    const { temporal, shared, start } = await newService(context);
    await temporal.start();
    const strata = await start();
    await createAccount(strata, 'ada');
    const session = await claim(strata);
    // Closing a login ends with an append; while the table is locked, the step cannot continue.
    const [client, observer] = [await connectTo(context, shared), await connectTo(context, shared)];
    await client.query('BEGIN');
    await client.query('LOCK TABLE events IN EXCLUSIVE MODE');
    const waiting = `FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%append_events%'
      AND datname = current_database()`;
    await until('the step is in its middle', async () => (await observer.query(`SELECT ${waiting}`)).rowCount === 1);
    await strata.kill();
    // PostgreSQL would finish the append of a client that is gone.
    await observer.query(`SELECT pg_terminate_backend(pid) ${waiting}`);
    await client.query('ROLLBACK');
    assert.equal(await isClosed(shared, session), false);
    const again = await strata.restart();
    await until('the login is closed', () => isClosed(shared, session));
    await until('workflows are ready', async () => (await readyz(again)).workflows === 'ok');
  });
});

async function connectTo(context: TestContext, { env }: SharedParts): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  cleanUp(context, () => client.end());
  return client;
}

/** Grants a login and fetches its token; the login is closed five seconds later. */
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

/** Starts a TLS proxy that accepts only clients with a certificate of the authority, as a self-hosted cluster may. */
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
