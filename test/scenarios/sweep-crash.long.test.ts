/**
 * Servers killed with SIGKILL in the middle of a sweep of the retention, of a pruning and of an erasure: the next start
 * finishes what was begun, and all that verifies finds no fault.
 *
 * Invariants: the server has reached the point at which it was to die, or the test fails.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { pino } from 'pino';
import { describe, type TestContext, test } from 'vitest';
import { composeFoundation } from '../../apps/server/foundation.ts';
import { readSettings } from '../../apps/server/settings.ts';
import { decideAccount } from '../../core/account/decide.ts';
import { accounts } from '../../core/account/evolve.ts';
import { type AccountId, plusMs, uuid } from '../../core/kernel/ids.ts';
import { ACCOUNT_CLOSED_SPAN_MS, COMPACTION_IDLE_MS } from '../../core/kernel/limits.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { LAYERS_AT_REST_MAX } from '../../core/repository/compaction.ts';
import { execute } from '../../core/runtime/execute.ts';
import { accepted } from '../support/accounts.ts';
import { filesBelow } from '../support/files-below.ts';
import { killSample } from '../support/kill-sample.ts';
import { CAUSE } from '../support/node.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { createWebhook, listDeliveries, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');
const QUICK_INTERVALS = path.resolve(import.meta.dirname, '../support/quick-intervals.ts');
const SPAN_MS = 60_000;
const DAY_MS = 24 * 60 * 60_000;
const HOUR_MS = DAY_MS / 24;
const BEYOND_MS = 31 * DAY_MS;
const LIVES = { STRATA_FAILPOINT: '' };

interface Service {
  readonly shared: SharedParts;
  readonly ada: Account;
  readonly strata: Strata;
  /** Sets the server's clock ahead of the machine's. */
  ahead(ms: number): Promise<void>;
}

async function startService(context: TestContext, env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const shared = await sharedParts(context, 'postgres');
  const clockFile = path.join(await tempDir(context), 'ahead-ms');
  const ahead = (ms: number): Promise<void> => writeFile(clockFile, String(ms));
  await ahead(0);
  const strata = await startNode(context, shared, {
    ...{ ...env, NODE_OPTIONS: `--import ${SET_CLOCK} --import ${QUICK_INTERVALS}`, TEST_CLOCK_FILE: clockFile },
  });
  return { shared, strata, ahead, ada: await createAccount(strata, 'ada') };
}

/** Waits until the condition holds. */
async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + SPAN_MS; !(await condition()); await sleep(100)) {
    assert.ok(Date.now() < deadline, `not within a minute: ${what}`);
  }
}

async function hasDied({ process, log }: Strata): Promise<void> {
  await until('the server dies', async () => process.signalCode !== null || process.exitCode !== null);
  assert.equal(process.signalCode, 'SIGKILL', log());
}

const storedIn = async ({ shared }: Service, id: string): Promise<readonly string[]> =>
  (await filesBelow(shared.layersDir)).filter((file) => file.startsWith(`repositories/${id}/layers/`));

const countOf = async ({ shared }: Service, type: string): Promise<number> =>
  (await shared.log.since()).filter((event) => event.type === type).length;

/** Makes a repository of this many pushes, and returns its id and its last commit. */
async function pushMany(context: TestContext, { strata }: Service, owner: Account, name: string, pushes: number) {
  const url = await createRepository(strata, owner, name);
  const { id } = (await api(strata, owner.token, 'GET', `/v1/repos/${owner.username}/${name}`)).body as {
    readonly id: string;
  };
  const work = await newWorkTree(context);
  let last = '';
  for (let n = 0; n < pushes; n += 1) {
    last = await commitFile(work, `file-${n % 3}`, `${n}\n`);
    await git(work, ['push', '--quiet', url, 'HEAD:main']);
  }
  return { id, last };
}

async function assertCloned(context: TestContext, strata: Strata, owner: Account, name: string, last: string) {
  const clone = path.join(await tempDir(context), 'clone.git');
  await git(path.dirname(clone), ['clone', '--quiet', '--mirror', gitUrl(strata, owner, name), clone]);
  await git(clone, ['fsck', '--full', '--strict']);
  assert.equal((await git(clone, ['rev-parse', 'refs/heads/main'])).trim(), last);
}

/** Everything agrees with everything: log, trees, references, read models, storage. */
async function assertVerified(strata: Strata): Promise<void> {
  const { faults } = (await admin(strata, ['log', 'verify', '--references'])) as { readonly faults: unknown };
  assert.deepEqual(faults, []);
  const { projections } = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
    readonly projections: readonly { readonly differences: number }[];
  };
  assert.ok(projections.every(({ differences }) => differences === 0));
  const storage = (await admin(strata, ['storage', 'verify'])) as { readonly fault_count: number };
  assert.equal(storage.fault_count, 0);
}

const EXPIRY_POINTS = ['expiry-appended', 'expired-layer-removed'] satisfies FailpointName[];
const ERASURE_POINTS = [
  'account-erased',
  'erasure-key-destroyed',
  'erasure-recorded',
  'erasure-rows-removed',
  'repository-closed',
  'purge-appended',
  'erasure-layer-removed',
] satisfies FailpointName[];

describe('A server killed', { timeout: 6 * SPAN_MS }, () => {
  const expiries = killSample(EXPIRY_POINTS);
  for (const point of EXPIRY_POINTS) {
    test(`at ${point} lets replaced layers go later, and keeps the current ones`, expiries(point), async (context) => {
      const service = await startService(context, { STRATA_FAILPOINT: point });
      const { id, last } = await pushMany(context, service, service.ada, 'engine', LAYERS_AT_REST_MAX + 1);
      await service.ahead(2 * COMPACTION_IDLE_MS);
      await until('the layers are merged', async () => (await countOf(service, 'LayersCompacted')) > 0);
      assert.ok((await storedIn(service, id)).length > LAYERS_AT_REST_MAX);
      await service.ahead(BEYOND_MS);
      await hasDied(service.strata);
      const strata = await service.strata.restart(LIVES);
      await until('replaced layers leave', async () => (await storedIn(service, id)).length < LAYERS_AT_REST_MAX);
      await assertCloned(context, strata, service.ada, 'engine', last);
      assert.equal(await countOf(service, 'LayersExpired'), await countOf(service, 'LayersCompacted'));
      await assertVerified(strata);
    });
  }

  test('while it removes a deleted repository removes the rest later, and never gives it back', async (context) => {
    const service = await startService(context, { STRATA_FAILPOINT: 'expired-layer-removed' });
    const { ada } = service;
    const kept = await pushMany(context, service, ada, 'kept', 1);
    const { id } = await pushMany(context, service, ada, 'gone', 4);
    await api(service.strata, ada.token, 'DELETE', '/v1/repos/ada/gone');
    await service.ahead(BEYOND_MS);
    await until('the layers expire', async () => (await countOf(service, 'LayersExpired')) > 0);
    assert.equal((await storedIn(service, id)).length, 4);
    await service.ahead(BEYOND_MS + 2 * HOUR_MS);
    await hasDied(service.strata);
    assert.equal((await storedIn(service, id)).length, 3);
    const strata = await service.strata.restart(LIVES);
    await until('all its layers leave', async () => (await storedIn(service, id)).length === 0);
    assert.equal((await api(strata, ada.token, 'POST', `/v1/repositories/${id}/restore`)).status, 410);
    await assertCloned(context, strata, ada, 'kept', kept.last);
    await assertVerified(strata);
  });

  test('between the prunings of two streams prunes the other later, with the rows of both', async (context) => {
    const receivers = await webhookReceivers(context);
    const service = await startService(context, { ...receivers.env, STRATA_FAILPOINT: 'stream-pruned' });
    const { ada } = service;
    const webhook = await createWebhook(service.strata, ada, (await receivers.start()).url);
    const { last } = await pushMany(context, service, ada, 'engine', 2);
    const wanted = await untilDeliveries(service.strata, ada, webhook.id, (list) => {
      return list.length === 3 && list.every(({ status }) => status === 'SUCCESS');
    });
    await createRepository(service.strata, ada, 'later');
    const streams = async (): Promise<number> => {
      const events = await service.shared.log.since();
      return new Set(events.map(({ stream }) => stream).filter((stream) => stream.startsWith('webhookDelivery-'))).size;
    };
    assert.equal(await streams(), wanted.length);
    await service.ahead(BEYOND_MS);
    await hasDied(service.strata);
    assert.equal(await streams(), wanted.length - 1);
    const strata = await service.strata.restart(LIVES);
    await until('the other streams leave', async () => (await streams()) === 0);
    await until('their rows leave', async () => (await listDeliveries(strata, ada, webhook.id)).length === 0);
    await assertCloned(context, strata, ada, 'engine', last);
    await assertVerified(strata);
  });

  const erasures = killSample(ERASURE_POINTS);
  for (const point of ERASURE_POINTS) {
    test(`at ${point} erases the account later, and nothing of another one`, erasures(point), async (context) => {
      const service = await startService(context, { STRATA_FAILPOINT: point });
      const { ada, shared } = service;
      const bob = await createAccount(service.strata, 'bob');
      const { last } = await pushMany(context, service, bob, 'kept', 1);
      const { id } = await pushMany(context, service, ada, 'diary', 3);
      const cached = async (): Promise<readonly string[]> =>
        (await filesBelow(path.join(service.strata.dataDir, 'cache'))).filter((file) => file.includes(id));
      assert.notDeepEqual(await cached(), []);
      await signIn(service, ada.id);
      await signIn(service, bob.id);
      await close(service, uuid<AccountId>(ada.id));
      await service.ahead(ACCOUNT_CLOSED_SPAN_MS + DAY_MS);
      await hasDied(service.strata);
      const strata = await service.strata.restart(LIVES);
      const erased = async (): Promise<boolean> =>
        (await storedIn(service, id)).length === 0 &&
        (await cached()).length === 0 &&
        (await signedIn(service, ada.id)) === 0 &&
        (await filesBelow(shared.layersDir)).includes(`erasures/${ada.id}`);
      await until('the account is erased', erased);
      assert.equal((await api(strata, ada.token, 'GET', '/v1/repositories')).status, 401);
      assert.equal(await countOf(service, 'AccountErased'), 1);
      assert.equal(await signedIn(service, bob.id), 1);
      await assertCloned(context, strata, bob, 'kept', last);
      await assertVerified(strata);
    });
  }
});

async function query({ shared }: Service, text: string, values: readonly string[]): Promise<number> {
  const client = new Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  try {
    return (await client.query(text, [...values])).rowCount ?? 0;
  } finally {
    await client.end();
  }
}

/** Gives the account the session of a browser. */
async function signIn(service: Service, account: string): Promise<void> {
  const text = `
    INSERT INTO web_sessions (id_hash, handle, account_id, epoch, status, kept, created_at, seen_at, expires_at)
    VALUES ($1, gen_random_uuid(), $2, 0, 'signed-in', '{}', $3, $3, '2999-01-01T00:00:00.000Z')`;
  await query(service, text, [account, account, '2026-01-01T00:00:00.000Z']);
}

const signedIn = (service: Service, account: string): Promise<number> =>
  query(service, 'SELECT 1 FROM web_sessions WHERE account_id = $1', [account]);

/** Closes an account as its person does on the website. */
async function close({ strata }: Service, account: AccountId): Promise<void> {
  const foundation = await composeFoundation(readSettings(strata.env, '/'), pino({ level: 'silent' }), {
    ...{ besideServer: true, entitiesSizeBytesMax: 1024 * 1024, onFault: () => undefined },
  });
  try {
    const { context } = foundation;
    const eraseAt = plusMs(context.clock.now(), ACCOUNT_CLOSED_SPAN_MS);
    accepted(
      await execute(context, accounts, account, { account, cause: CAUSE }, (state) =>
        decideAccount(state, { type: 'CloseAccount', eraseAt }),
      ),
    );
  } finally {
    await foundation.close();
  }
}
