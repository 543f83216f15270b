/**
 * Measures what 10,000 deliveries to a dead receiver cost: the server's load while they only wait, and how soon a
 * healthy receiver gets the delivery of a push while they wait, while all of them fall due at the same moment, and
 * while their attempts hang.
 *
 * Invariants: everything runs on the loopback interface and in a folder of its own; whatever happens, the bench
 * ends what it started and removes its folder. The bench appends the deliveries directly to the log, in the state
 * before their last attempt, as a server would have appended them.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { digest } from '../../adapters/node/digest.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { createPostgresDeliveryStore } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { LOG_START, type RecordedEvent, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, type EventId, plusMs, type Timestamp, timestamp, uuid } from '../../core/kernel/ids.ts';
import { WEBHOOK_ATTEMPTS_MAX, WEBHOOK_RETRY_WAITS_MS } from '../../core/kernel/limits.ts';
import { type AppendRequest, appendInOrder } from '../../core/ports/event-store.ts';
import { createAuthority } from '../support/certificates.ts';
import type { Ending } from '../support/cleanup.ts';
import { newEvent } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { startReceiver } from '../support/receiver.ts';
import { commitFile, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { createWebhook } from '../support/webhook-receiver.ts';
import { describeMachine } from './environment.ts';
import { sampleMemory } from './memory.ts';
import { createProcessGroup, type ProcessGroup } from './processes.ts';
import { findFreePort } from './sides/ports.ts';
import { percentile } from './statistics.ts';
import { formatFigure, renderTable } from './table.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const DELIVERIES = 10_000;
const BATCH_APPENDS = 1_000;
const PUSHES = 60;
/**
 * The time from filling the log until all fall due: it covers the server's start, its read models, and the measurement
 * while they wait.
 */
const DUE_AFTER_MS = 120_000;
const GRACE_MS = 30_000;
const MIB = 1024 * 1024;
/** The target for a healthy receiver's first attempts. */
const P99_MS_MAX = 1_000;
/** The target for a server that is nearly idle. */
const IDLE_CORES_MAX = 0.05;

export interface WebhookBenchOptions {
  /** How long the idle server is measured. */
  readonly seconds: number;
  readonly say: (text: string) => void;
}

export interface WebhookFigures {
  readonly phase: string;
  /** From the push's event to the healthy receiver's request. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /**
   * The cores that all processes, PostgreSQL's included, keep busy while nobody pushes; null where that was not
   * measured.
   */
  readonly cores: number | null;
  readonly serverBytes: number;
  readonly databaseBytes: number;
}

export interface WebhookBenchResult {
  readonly date: string;
  readonly machine: string;
  readonly figures: readonly WebhookFigures[];
  /** The cores that a server without deliveries keeps busy. */
  readonly restingCores: number;
  /** From the time when all deliveries were due until the server recorded the last of them as due. */
  readonly fellDueSeconds: number;
  /** The connections that the dead receiver accepted. */
  readonly hungConnections: number;
}

interface Scene {
  readonly folder: string;
  readonly dataDir: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  readonly ending: Ending;
}

export async function benchWebhooks({ seconds, say }: WebhookBenchOptions): Promise<WebhookBenchResult> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'strata-bench-'));
  // When root runs the bench, the embedded PostgreSQL runs as another user, who must be able to traverse this folder.
  await chmod(folder, 0o711);
  const steps: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true, maxRetries: 5 })];
  let cleaned: Promise<void> | null = null;
  const cleanUp = (): Promise<void> => {
    cleaned ??= (async () => {
      for (const step of steps.toReversed()) await step();
    })();
    return cleaned;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
  }
  try {
    return await measure(await newScene(folder, { onTestFinished: (step) => void steps.push(step) }), seconds, say);
  } finally {
    await cleanUp();
  }
}

async function newScene(folder: string, ending: Scene['ending']): Promise<Scene> {
  const dataDir = path.join(folder, 'data');
  const port = await findFreePort();
  const own = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].startsWith('STRATA_'),
  );
  const settings = {
    ...{
      STRATA_PORT: String(port),
      STRATA_DATA_DIR: dataDir,
      STRATA_LOG_LEVEL: 'error',
      NODE_ENV: 'production',
      STRATA_RATE_FACTOR: '1000',
    },
    ...{ STRATA_ALLOW_PRIVATE_TARGETS: 'true', NODE_EXTRA_CA_CERTS: path.join(folder, 'authority.pem') },
  };
  return { folder, dataDir, port, env: { ...Object.fromEntries(own), ...settings }, ending };
}

async function measure(scene: Scene, seconds: number, say: (text: string) => void): Promise<WebhookBenchResult> {
  const { ending, port } = scene;
  const authority = createAuthority();
  await writeFile(path.join(scene.folder, 'authority.pem'), authority.cert);
  const arrivals: number[] = [];
  const healthy = await startReceiver(ending, authority.issue(['127.0.0.1']), (socket) => {
    arrivals.push(Date.now());
    socket.end('HTTP/1.1 204 No Content\r\n\r\n');
  });
  const dead = await startDeadReceiver(ending);
  const at = { url: `http://localhost:${port}`, env: scene.env };
  say('Making the accounts');
  const first = await startServer(scene, 'make');
  const [mallory, ada] = [await createAccount(at, 'mallory'), await createAccount(at, 'ada')];
  const { id: webhook } = await createWebhook(at, mallory, `https://127.0.0.1:${dead.port}/hook`, ['push']);
  await createWebhook(at, ada, `https://127.0.0.1:${healthy.port}/hook`, ['push']);
  const remote = await createRepository(at, ada, 'engine');
  say('Watching a server that has nothing to deliver');
  const restingCores = await idleCores(first, seconds);
  await first.end();
  say(`Writing ${DELIVERIES} deliveries`);
  const dueAt = await fillLog(scene, uuid<AccountId>(mallory.id), webhook);

  const group = await startServer(scene, 'serve');
  const work = await newWorkTree(ending);
  const pushedIds: string[] = [];
  const push = async (): Promise<void> => {
    const wanted = healthy.requests.length + 1;
    pushedIds.push(await commitFile(work, `file-${pushedIds.length}`, String(pushedIds.length)));
    await git(work, ['push', '--quiet', remote, 'main']);
    while (healthy.requests.length < wanted) await sleep(1);
  };
  // The first push creates the repository's folders and caches.
  await push();
  const phases: (Omit<WebhookFigures, 'p50Ms' | 'p99Ms'> & { readonly from: number; readonly to: number })[] = [];
  const watch = async (phase: string, idle: boolean): Promise<void> => {
    say(`${phase}: ${PUSHES} pushes`);
    const cores = idle ? await idleCores(group, seconds) : null;
    const from = pushedIds.length;
    for (let count = 0; count < PUSHES; count += 1) await push();
    const { serverBytes, databaseBytes } = sampleMemory(group);
    phases.push({ phase, cores, from, to: pushedIds.length, serverBytes, databaseBytes });
  };
  await watch('all wait', true);
  const restMs = Date.parse(dueAt) - Date.now();
  if (restMs < 0) throw new Error('The machine is too slow: the deliveries fell due before they were watched');
  say(`Waiting ${Math.round(restMs / 1_000)} s until all fall due`);
  await sleep(restMs);
  await watch('all fall due', false);
  await watch('all are due, eight hang', true);
  await group.end();

  const log = await readLog(scene);
  const pushedAt = new Map(log.flatMap(pushesOf));
  const latenciesMs = pushedIds.map((id, index) => (arrivals[index] ?? 0) - Date.parse(pushedAt.get(id) ?? ''));
  const figures = phases.map(({ phase, cores, from, to, serverBytes, databaseBytes }): WebhookFigures => {
    const own = latenciesMs.slice(from, to);
    return { phase, p50Ms: percentile(own, 0.5), p99Ms: percentile(own, 0.99), cores, serverBytes, databaseBytes };
  });
  const fellDue = log.filter(({ type }) => type === 'WebhookDeliveryAttemptFellDue');
  if (fellDue.length !== DELIVERIES) throw new Error(`${fellDue.length} of ${DELIVERIES} deliveries fell due`);
  const lastMs = Math.max(...fellDue.map(({ occurredAt }) => Date.parse(occurredAt)));
  return {
    ...{ date: new Date().toISOString().slice(0, 10), machine: describeMachine(), figures, restingCores },
    fellDueSeconds: (lastMs - Date.parse(dueAt)) / 1_000,
    hungConnections: dead.connections(),
  };
}

/** A receiver that accepts connections and sends nothing, not even a TLS handshake. */
async function startDeadReceiver(ending: Scene['ending']) {
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ending.onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of open) socket.destroy();
    await closed;
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/**
 * Starts the server as npm start does; resolves when it is ready. `end` may be called repeatedly and also runs at the
 * end of the bench.
 */
async function startServer({ port, env, ending }: Scene, name: string): Promise<ProcessGroup> {
  const started = createProcessGroup(name, GRACE_MS);
  let ended: Promise<void> | null = null;
  const group = {
    ...started,
    end: () => {
      ended ??= started.end();
      return ended;
    },
  };
  ending.onTestFinished(() => group.end());
  const launch = [path.join(ROOT, 'apps/launcher/launch.cjs'), 'apps/server/main.ts'];
  const child = group.start(process.execPath, launch, { cwd: ROOT, env, stdio: ['ignore', 2, 2] });
  while (!(await isReady(port))) {
    if (child.exitCode !== null) throw new Error(`The server ended with status ${child.exitCode}`);
    await sleep(50);
  }
  return group;
}

async function isReady(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    // The server does not listen yet.
    return false;
  }
}

async function idleCores(group: ProcessGroup, seconds: number): Promise<number> {
  await group.settle();
  const [cpuBefore, startMs] = [group.cpuSeconds(), performance.now()];
  await sleep(seconds * 1_000);
  return (group.cpuSeconds() - cpuBefore) / ((performance.now() - startMs) / 1_000);
}

async function withDatabase<Result>(
  { dataDir }: Scene,
  use: (connectionString: EmbeddedPostgres['ownerConnectionString']) => Promise<Result>,
): Promise<Result> {
  const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog() });
  try {
    return await use(embedded.ownerConnectionString);
  } finally {
    await embedded.stop();
  }
}

/**
 * Appends all deliveries, of one event, each before its last attempt; resolves with the time when that attempt is due.
 */
function fillLog(scene: Scene, account: AccountId, webhook: string): Promise<Timestamp> {
  return withDatabase(scene, async (connectionString) => {
    const log = keepLog();
    const pool = createPool({ connectionString, log });
    const eventId = uuid<EventId>(randomUUID());
    const body = JSON.stringify({ id: eventId });
    const now = timestamp(new Date().toISOString());
    const payload = { eventId, account, body, sha256: digest.sha256(body), storedAt: now };
    await createPostgresDeliveryStore(pool).putPayloads([payload]);
    await pool.end();
    const store = createPostgresEventStore({ connectionString, log });
    const attempt = WEBHOOK_ATTEMPTS_MAX - 1;
    const dueAt = plusMs(now, DUE_AFTER_MS);
    const endedAt = plusMs(dueAt, -(WEBHOOK_RETRY_WAITS_MS[attempt - 1] ?? 0));
    const of = { accountId: account, occurredAt: endedAt };
    const request = { webhook_id: webhook, event_id: eventId, event: 'push', repository_id: null };
    const failed = {
      ...{ series: 1, attempt, started_at: endedAt, duration_ms: 0, outcome: 'failed', http_status: null },
      ...{ error: 'timed-out', detail: null, answer_sha256: null },
    };
    const appends = Array.from({ length: DELIVERIES }, (): AppendRequest => {
      const requested = { ...request, payload_sha256: payload.sha256 };
      const claimed = { series: 1, attempt, claim_id: randomUUID(), until: plusMs(endedAt, 60_000) };
      const events = [
        newEvent({ ...of, type: 'WebhookDeliveryRequested', data: requested }),
        newEvent({ ...of, type: 'WebhookDeliveryAttemptClaimed', data: claimed }),
        newEvent({ ...of, type: 'WebhookDeliveryAttempted', data: failed }),
      ];
      return { stream: streamName('webhookDelivery', randomUUID()), expected: 'none', events };
    });
    for (let from = 0; from < appends.length; from += BATCH_APPENDS) {
      await appendInOrder(store, appends.slice(from, from + BATCH_APPENDS));
    }
    await store.close();
    return dueAt;
  });
}

function readLog(scene: Scene): Promise<readonly RecordedEvent[]> {
  return withDatabase(scene, async (connectionString) => {
    const store = createPostgresEventStore({ connectionString, log: keepLog() });
    const events = await store.readAll(LOG_START, 10 * DELIVERIES);
    await store.close();
    return events;
  });
}

/** Returns the time of the push of each commit. */
function pushesOf({ type, data, occurredAt }: RecordedEvent): [string, Timestamp][] {
  const updates = type === 'RefsUpdated' ? (data['updates'] as readonly { readonly after: string }[]) : [];
  return updates.map(({ after }) => [after, occurredAt]);
}

const HEAD = ['while of 10,000 deliveries', 'p50 ms', 'p99 ms', 'cores without pushes', 'memory MiB'];

const LEGEND = [
  'From the event of a push, by a real git client, to the request that its healthy receiver gets; another account’s',
  'receiver takes connections and never answers. Cores: of all processes, PostgreSQL’s among them. Memory:',
  'proportional set size of the server, and of PostgreSQL.',
].join('\n');

export function renderWebhookBench(result: WebhookBenchResult): string {
  const { date, machine, figures, restingCores, fellDueSeconds, hungConnections } = result;
  const rows = figures.map(({ phase, p50Ms, p99Ms, cores, serverBytes, databaseBytes }) => [
    ...[phase, formatFigure(p50Ms), `${formatFigure(p99Ms)}${p99Ms < P99_MS_MAX ? '' : ' (< 1,000, missed)'}`],
    cores === null ? '' : `${cores.toFixed(3)}${cores < IDLE_CORES_MAX ? '' : ` (< ${IDLE_CORES_MAX}, missed)`}`,
    `${Math.round(serverBytes / MIB)} + ${Math.round(databaseBytes / MIB)}`,
  ]);
  const resting = `Without deliveries the server takes ${restingCores.toFixed(3)} cores.`;
  const sums = `All were said to be due within ${fellDueSeconds.toFixed(1)} s; the dead receiver took ${hungConnections} connections.`;
  return `${date}, ${machine}\n\n${renderTable(HEAD, rows)}\n\n${resting} ${sums}\n${LEGEND}\n`;
}
