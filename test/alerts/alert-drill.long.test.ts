/**
 * The drill: each thing that an alert watches is broken on a server that runs, and the alert fires by what the server
 * then shows at `/metrics`; before that it does not.
 *
 * Invariants: only the wait is skipped. What was scraped is held for as long as the alert wants to see it.
 */
import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeEach, describe, type TestContext, test } from 'vitest';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import { until } from '../support/read-models.ts';
import { selfSignedCertificate } from '../support/self-signed-certificate.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import {
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { answeringStatus, createWebhook, webhookReceivers } from '../support/webhook-receiver.ts';
import { DRILLS, type Drill } from './drills.ts';
import { expectAlert } from './promtool.ts';
import type { Moment } from './scraped-history.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const preload = (...files: readonly string[]) => ({
  NODE_OPTIONS: files.map((file) => `--import=${path.resolve(import.meta.dirname, file)}`).join(' '),
});

const fired = new Set<Drill>();
/** What this machine cannot break. */
const left = new Set<Drill>();

async function scrape(strata: Pick<Strata, 'url'>, heldSeconds: number): Promise<Moment> {
  // The figures are made once a second.
  await sleep(1_100);
  const text = await fetch(`${strata.url}/metrics`).then(
    (answer) => answer.text(),
    () => null,
  );
  return { text, atSeconds: Date.now() / 1_000, heldSeconds };
}

/** A figure of the text; NaN if it is not shown. */
function figure({ text }: Moment, series: string): number {
  const line = (text ?? '').split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? Number.NaN);
}

/** Scrapes until the figure is more than that. */
async function scrapeUntil(strata: Strata, series: string, moreThan: number): Promise<Moment> {
  let seen = await scrape(strata, MINUTE);
  await until(async () => {
    seen = await scrape(strata, MINUTE);
    return figure(seen, series) > moreThan;
  });
  return seen;
}

/** The alert does not fire while `before` lasts, and fires when `after` has lasted. */
async function fires(
  alert: Drill,
  before: readonly Moment[],
  after: readonly Moment[],
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await expectAlert(alert, false, before, labels);
  await expectAlert(alert, true, [...before, ...after], labels);
  fired.add(alert);
}

const held = (moment: Moment, heldSeconds: number): Moment => ({ ...moment, heldSeconds });

async function ownerOf(context: Ending, shared: SharedParts): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  cleanUp(context, () => client.end());
  return client;
}

/** The tables of a read model. */
async function tablesOf(owner: pg.Client, model: string): Promise<readonly string[]> {
  const { rows } = await owner.query<{ readonly name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'read_models'::regnamespace
       AND relname LIKE $1`,
    [`${model}%`],
  );
  assert.ok(rows.length > 0);
  return rows.map(({ name }) => name);
}

async function service(context: TestContext, env: Readonly<Record<string, string>> = {}) {
  const shared = await sharedParts(context, 'postgres');
  const layersDir = path.join(await tempDir(context), 'layers');
  const strata = await startNode(context, shared, { STRATA_LAYERS_DIR: layersDir, ...env });
  const ada = await createAccount({ env: shared.env }, 'ada');
  const url = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  return { shared, layersDir, strata, ada, url, work };
}

describe('An alert fires', needs('promtool'), () => {
  let begun = 0;
  let all = 0;
  beforeEach(({ task }) => {
    begun += 1;
    all = task.suite?.tasks.length ?? 0;
  });
  afterAll(() => {
    // A rule that nothing triggers is no alert. A run of single tests says nothing of the others.
    if (begun < all) return;
    const missing = DRILLS.filter((alert) => !fired.has(alert) && !left.has(alert));
    assert.deepEqual(missing, [], 'not fired');
  });

  test('when the store of layers is away and pushes fail', async (context) => {
    const { layersDir, strata, url, work } = await service(context);
    const before = [await scrape(strata, 10 * MINUTE)];
    await rename(layersDir, `${layersDir}-away`);
    await commitFile(work, 'second', 'second\n');
    assert.notEqual((await tryGit(work, ['push', url, 'main'])).code, 0);
    const after = await scrapeUntil(strata, 'strata_part_degraded{part="layers"}', 0);
    await rename(`${layersDir}-away`, layersDir);
    await fires('StrataPushOutage', before, [after]);
    await fires('StrataPartDegraded', before, [held(after, 2 * MINUTE)], { part: 'layers' });
  });

  test("when a node's clock is wrong", async (context) => {
    const { strata, url, work } = await service(context, preload('../support/machine-clock.ts'));
    const before = [await scrape(strata, 10 * MINUTE)];
    strata.process.kill('SIGUSR2');
    await commitFile(work, 'second', 'second\n');
    assert.notEqual((await tryGit(work, ['push', url, 'main'])).code, 0);
    const after = await scrape(strata, 2 * MINUTE);
    await fires('StrataClockDiffers', before, [after]);
    strata.process.kill('SIGUSR2');
  });

  test('when a node is down, and when it was started again', async (context) => {
    const { strata } = await service(context);
    const before = [await scrape(strata, 10 * MINUTE)];
    await strata.kill();
    const down = await scrape(strata, 2 * MINUTE);
    assert.equal(down.text, null);
    await fires('StrataNodeDown', before, [down]);
    const again = await scrape(await strata.restart(), MINUTE);
    await fires('StrataRestarted', [...before, down], [again]);
  });

  test('when a sweep fails', async (context) => {
    const { shared, strata } = await service(context, preload('../support/quick-intervals.ts'));
    const before = [await scrapeUntil(strata, lastSuccess('vault-sweep'), 0)];
    const owner = await ownerOf(context, shared);
    await owner.query('ALTER TABLE vault_read_mark RENAME TO vault_read_mark_away');
    const after = await scrapeUntil(strata, 'strata_faults_total{what="vault-sweep"}', 1);
    await owner.query('ALTER TABLE vault_read_mark_away RENAME TO vault_read_mark');
    const work = { work: 'vault-sweep' };
    await expectAlert('StrataSweepFails', false, [...before, held(after, 2 * HOUR)], work);
    await fires('StrataSweepFails', before, [held(after, 4 * HOUR)], work);
  });

  test('when the verification finds a changed event, and when it goes on no more', async (context) => {
    const preloaded = preload('../support/quick-intervals.ts', '../support/free-processor.ts');
    const { shared, strata } = await service(context, preloaded);
    const owner = await ownerOf(context, shared);
    const isWhole = async () => {
      const { rows } = await owner.query(
        `SELECT FROM verification_walks WHERE cursor IS NULL AND whole_since IS NOT NULL`,
      );
      return rows.length === 2;
    };
    await until(isWhole);
    const before = [held(await scrapeUntil(strata, WHOLE_WEEK, 0), HOUR)];
    assert.equal(figure(before[0] ?? assert.fail(), 'strata_verification_faults_total'), 0);
    await owner.query(`UPDATE events SET actor_id = 'somebody-else' WHERE type = 'RefsUpdated'`);
    await owner.query(`UPDATE verification_walks SET begun_at = '2026-01-01T00:00:00.000Z' WHERE walk = 'week'`);
    const found = await scrapeUntil(strata, 'strata_verification_faults_total', 0);
    await fires('StrataVerificationFault', before, [found]);
    await until(isWhole);
    await owner.query('ALTER TABLE verification_walks RENAME TO verification_walks_away');
    const after = await scrapeUntil(strata, 'strata_faults_total{what="verification"}', 1);
    await owner.query('ALTER TABLE verification_walks_away RENAME TO verification_walks');
    const round = { round: 'week' };
    await expectAlert('StrataVerificationLate', false, [...before, held(after, 8 * DAY)], round);
    await fires('StrataVerificationLate', before, [held(after, 10 * DAY)], round);
  });

  test('when a stream is parked', async (context) => {
    const { shared, strata, ada } = await service(context);
    const before = [await scrape(strata, 10 * MINUTE)];
    const owner = await ownerOf(context, shared);
    const tables = await tablesOf(owner, 'repositories');
    for (const name of tables) await owner.query(`ALTER TABLE ${name} ADD CHECK (false) NOT VALID`);
    const made = await api(strata, ada.token, 'POST', '/v1/repositories', { name: 'parked' });
    assert.equal(made.status, 201, made.text);
    const after = await scrapeUntil(strata, 'strata_projection_parked_streams', 0);
    await fires('StrataParkedStreams', before, [held(after, 20 * MINUTE)]);
  });

  test('when the log loses its end', async (context) => {
    const { shared, strata, ada } = await service(context, { STRATA_READ_LEASE_MS: '0' });
    const before = [await scrape(strata, 10 * MINUTE)];
    const owner = await ownerOf(context, shared);
    await owner.query('DELETE FROM events WHERE position > (SELECT max(position) - 3 FROM events)');
    // Whatever it answers, it asks the log.
    await api(strata, ada.token, 'GET', '/v1/repositories');
    const after = await scrapeUntil(strata, 'strata_log_diverged_total', 0);
    await fires('StrataLogDiverged', before, [after]);
    await until(async () => /strata_projection_halted_total\{[^}]*\} [1-9]/.test((await scrape(strata, 0)).text ?? ''));
    await fires('StrataModelHalted', before, [await scrape(strata, MINUTE)]);
  });

  test('when a log does not continue its last checkpoint', async (context) => {
    const { shared, layersDir, strata, ada } = await service(context);
    const headers = { Authorization: `Bearer ${ada.token}` };
    const note = await (await fetch(`${strata.url}/v1/account/checkpoints/latest`, { headers })).text();
    const before = [await scrape(strata, 10 * MINUTE)];
    await strata.stop();
    // The log as a restore leaves it: a checkpoint of more entries was signed.
    const newest = path.join(layersDir, 'checkpoints', ada.id, '0000000000000999');
    await writeFile(newest, note.replace(/\n\d+\n/, '\n999\n'));
    const restored = await startNode(context, shared, { STRATA_LAYERS_DIR: layersDir });
    const after = await scrapeUntil(restored, 'strata_checkpoints_contradicted', 0);
    await fires('StrataCheckpointsContradicted', before, [held(after, 2 * MINUTE)]);
  });

  test('when calls wait for a connection to PostgreSQL', async (context) => {
    const { shared, strata, ada } = await service(context, { STRATA_DATABASE_CONNECTIONS_MAX: '20' });
    const before = [await scrape(strata, 10 * MINUTE)];
    const owner = await ownerOf(context, shared);
    // With 20 connections requests have one, which waits for this lock.
    const tables = await tablesOf(owner, 'repositories');
    await owner.query(`BEGIN; LOCK TABLE ${tables.join(', ')} IN ACCESS EXCLUSIVE MODE`);
    const targets = Array.from({ length: 10 }, (_, index) => `/v1/repositories?limit=${index + 1}`);
    const asked = Promise.allSettled(targets.map((target) => api(strata, ada.token, 'GET', target)));
    const after = await scrapeUntil(strata, 'strata_database_waiting{pool="requests"}', 0);
    await owner.query('ROLLBACK');
    await asked;
    const pool = { pool: 'requests' };
    await expectAlert('StrataConnectionsWait', false, [...before, held(after, MINUTE)], pool);
    await fires('StrataConnectionsWait', before, [held(after, 3 * MINUTE)], pool);
  });

  test('when no worker runs: models, deliveries and workflows are late', async (context) => {
    const receivers = await webhookReceivers(context);
    const { shared, strata, ada, url, work } = await service(context, receivers.env);
    const receiver = await receivers.start(answeringStatus(500));
    await createWebhook(strata, ada, receiver.url);
    await commitFile(work, 'second', 'second\n');
    await git(work, ['push', '--quiet', url, 'main']);
    await receiver.until(1);
    const before = [await scrapeUntil(strata, 'strata_webhook_deliveries_pending', 0)];
    await strata.stop();
    const env = {
      ...receivers.env,
      STRATA_ROLES: 'api,git,website',
      STRATA_LAYERS_DIR: strata.env['STRATA_LAYERS_DIR'] ?? '',
    };
    const left = await startNode(context, shared, env);
    await commitFile(work, 'third', 'third\n');
    await git(work, ['push', '--quiet', newAddress(url, left), 'main']);
    await scrapeUntil(left, 'strata_projection_lag_events{model="repositories"}', 0);
    await sleep(75_000);
    const after = await scrape(left, 5 * MINUTE);
    await fires('StrataModelBehind', before, [after], { model: 'repositories' });
    await fires('StrataWorkflowsOverdue', before, [after]);
    await fires('StrataWebhooksStuck', before, [held(after, 5 * HOUR)]);
  });

  test('when the disk is nearly full', async (context) => {
    const disk = mountSmallDisk(64 * 2 ** 20);
    if ('skip' in disk) {
      left.add('StrataDiskLow');
      return context.skip(disk.skip);
    }
    cleanUp(context, () => disk.remove());
    const before = [await scrape((await service(context)).strata, 10 * MINUTE)];
    const { strata } = await service(context, { STRATA_LAYERS_DIR: path.join(disk.path, 'layers') });
    const after = await scrapeUntil(strata, 'strata_disk_free_bytes{folder="layers"}', 0);
    await fires('StrataDiskLow', before, [held(after, 2 * MINUTE)], { folder: 'layers' });
  });

  test('when a certificate is about to expire', async (context) => {
    const folder = await tempDir(context);
    const expiring = async (days: number): Promise<Moment> => {
      const { cert, key } = selfSignedCertificate(new Date(Date.now() + days * 24 * HOUR * 1_000));
      await writeFile(path.join(folder, 'cert.pem'), cert);
      await writeFile(path.join(folder, 'key.pem'), key);
      const shared = await sharedParts(context, 'postgres');
      const tls = { STRATA_TLS_CERT: path.join(folder, 'cert.pem'), STRATA_TLS_KEY: path.join(folder, 'key.pem') };
      const strata = await startStrata(context, { log: 'postgres', env: { ...shared.env, ...tls } });
      const text = await textOver(`${strata.url.replace('http:', 'https:')}/metrics`, cert);
      return { text, atSeconds: Date.now() / 1_000, heldSeconds: 10 * MINUTE };
    };
    await fires('StrataCertificateExpires', [await expiring(30)], [await expiring(6)]);
  });
});

const WHOLE_WEEK = 'strata_verified_since_timestamp_seconds{round="week"}';

function lastSuccess(work: string): string {
  return `strata_background_last_success_timestamp_seconds{work="${work}"}`;
}

function newAddress(url: string, { url: base }: Strata): string {
  const address = new URL(url);
  address.port = new URL(base).port;
  return address.href;
}

function textOver(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { ca }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
}
