/**
 * Measures what the length of the log costs a server: the seconds until it is ready, and its memory then and after
 * reading 1,000 random repositories, on logs of three lengths.
 *
 * `node test/bench/log-size.ts [events] [repositories]`: by default 1,000,000 events of 100,000 repositories, besides a
 * log of a hundredth of them and an empty one. A first server serves each log before the measured one; `built` is the
 * time until that first server has become idle, with its read models and policies up to date.
 *
 * Invariants: everything runs on the loopback interface and in a folder of its own, which is removed at the end.
 */
import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { digest } from '../../adapters/node/digest.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { migrate } from '../../adapters/postgres/migrate.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, uuid } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { type AppendRequest, appendInOrder, type EventStore } from '../../core/ports/event-store.ts';
import { tokenIdOf } from '../../core/use-cases/callers/authenticate.ts';
import { newEvent } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { createDice } from '../support/seeded.ts';
import { describeMachine } from './environment.ts';
import { sampleMemory } from './memory.ts';
import { createProcessGroup } from './processes.ts';
import { findFreePort } from './sides/ports.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** One, so that the bench reads as many accounts as repositories on every log: accounts take memory too. */
const REPOSITORIES_PER_ACCOUNT = 1;
const PUSHES_PER_APPEND = 10;
const BATCH_APPENDS = 1_000;
const READS = 1_000;
const READERS = 4;
const GRACE_MS = 30_000;
/**
 * A server builds the read models and policies of a long log for minutes; its pauses between two batches are shorter
 * than the window.
 */
const REST_SPAN = { waitMs: 30 * 60_000, windowMs: 2_000 };
/** Has the form of a vault reference; nothing reads the value behind it. */
const REF = digest.sha256('nothing');
const MIB = 1024 * 1024;
/** The highest load of the machine before the run at which the figures may be published. */
const QUIET_LOAD_MAX = 0.3;

interface Repository {
  readonly path: string;
  readonly secret: string;
}

/**
 * Yields every append of a log in order: accounts with a token, their repositories, and pushes to these in rotation.
 */
function* appendsOf(events: number, repositories: number, made: Repository[]): Generator<AppendRequest> {
  const ids: string[] = [];
  for (let index = 0; index < repositories / REPOSITORIES_PER_ACCOUNT; index += 1) {
    const account = uuid<AccountId>(randomUUID());
    const username = `user${index}`;
    const secret = newTokenSecret();
    const event = (type: string, data: JsonObject) => newEvent({ type, accountId: account, data });
    const claimed = { account, until: '2026-11-21T10:10:00.000Z' };
    const claim = streamName('username', username);
    yield { stream: claim, expected: 'none', events: [event('Claimed', claimed), event('Confirmed', { account })] };
    const created = { username, email_ref: REF, password_hash_ref: REF, plan: 'PLATFORM' };
    const stream = streamName('account', account);
    yield { stream, expected: 'none', events: [event('AccountCreated', created)] };
    const secretHash = digest.sha256(secret);
    const token = {
      ...{ account, name: 'bench', scope: 'ALL_REPO', grants: ['ALL'], repository_ids: [], expires_at: null },
      ...{ secret_hash: secretHash, token_prefix: secret.slice(0, 11) },
    };
    const tokenStream = streamName('accessToken', tokenIdOf(uuids, secretHash));
    yield { stream: tokenStream, expected: 'none', events: [event('AccessTokenCreated', token)] };
    for (let number = 0; number < REPOSITORIES_PER_ACCOUNT; number += 1) {
      const id = randomUUID();
      const data = {
        ...{ repository_id: id, name: `repository-${number}`, description: null },
        ...{ default_branch: null, storage_bucket_id: null },
      };
      yield { stream, expected: number, events: [event('RepositoryCreated', data)] };
      ids.push(id);
      made.push({ path: `${username}/repository-${number}`, secret });
    }
  }
  const pushes = events - repositories;
  for (let push = 0; push < pushes; push += PUSHES_PER_APPEND) {
    const id = ids[(push / PUSHES_PER_APPEND) % ids.length] ?? '';
    const before = Math.floor(push / PUSHES_PER_APPEND / ids.length) * PUSHES_PER_APPEND - 1;
    yield {
      stream: streamName('repository', id),
      expected: before < 0 ? 'none' : before,
      events: Array.from({ length: Math.min(PUSHES_PER_APPEND, pushes - push) }, (_, n) => pushEvent(before + 1 + n)),
    };
  }
}

/** A push event of a ref whose commits are not listed: the bench measures the log, not the reading of objects. */
function pushEvent(revision: number) {
  const update = {
    ...{ ref: `refs/notes/${revision}`, before: '0'.repeat(40), after: digest.sha256(String(revision)).slice(0, 40) },
    ...{ type: 'commit', peeled: null, kind: 'create' },
  };
  const rest = { layer: null, push_options: [], refused: 0, received_bytes: 0 };
  return newEvent({ type: 'RefsUpdated', data: { push_id: randomUUID(), updates: [update], parts: null, ...rest } });
}

async function fill(store: EventStore, appends: Iterable<AppendRequest>): Promise<void> {
  let batch: AppendRequest[] = [];
  const flush = async (): Promise<void> => {
    const results = await appendInOrder(store, batch);
    if (results.some(({ outcome }) => outcome === 'conflict')) throw new Error('The log is not empty');
    batch = [];
  };
  for (const append of appends) {
    batch.push(append);
    if (batch.length === BATCH_APPENDS) await flush();
  }
  await flush();
}

async function makeLog(dataDir: string, events: number, repositories: number): Promise<readonly Repository[]> {
  const log = keepLog();
  const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log });
  try {
    const { ownerConnectionString: connectionString } = embedded;
    await migrate({ connectionString, log });
    const store = createPostgresEventStore({ connectionString, log });
    const made: Repository[] = [];
    await fill(store, appendsOf(events, repositories, made));
    await store.close();
    return made;
  } finally {
    await embedded.stop();
  }
}

interface Served {
  readonly readySeconds: number;
  /** From the start until the server was idle. */
  readonly restedSeconds: number;
  readonly readyBytes: number;
  readonly readBytes: number | null;
  readonly databaseBytes: number;
  /** What the server's metrics report for its cache of entities, and for the heap of V8. */
  readonly entitiesBytes: number;
  readonly heapBytes: number;
}

/** Starts the server, waits until it is idle, reads some of the repositories, and ends it. */
async function serve(dataDir: string, name: string, repositories: readonly Repository[]): Promise<Served> {
  const group = createProcessGroup(name, GRACE_MS);
  const port = await findFreePort();
  const own = Object.entries(process.env).filter(([setting]) => !setting.startsWith('STRATA_'));
  const server = {
    STRATA_PORT: String(port),
    STRATA_DATA_DIR: dataDir,
    STRATA_LOG_LEVEL: 'error',
    STRATA_RATE_FACTOR: '1000',
  };
  const start = performance.now();
  // Starts the server as npm start does, since the launcher's options bound the memory of Node.
  const launch = [path.join(ROOT, 'apps/launcher/launch.cjs'), 'apps/server/main.ts'];
  const child = group.start(process.execPath, launch, {
    cwd: ROOT,
    env: { ...Object.fromEntries(own), ...server, NODE_ENV: 'production' },
    stdio: ['ignore', process.stderr, process.stderr],
  });
  try {
    while (!(await isReady(port))) {
      if (child.exitCode !== null) throw new Error(`The server ended with status ${child.exitCode}`);
      await sleep(10);
    }
    const readySeconds = (performance.now() - start) / 1_000;
    if (!(await group.settle(REST_SPAN))) throw new Error('The server did not become idle');
    const restedSeconds = (performance.now() - start) / 1_000;
    const ready = sampleMemory(group);
    const left = [...repositories];
    const readers = Array.from({ length: READERS }, async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await read(port, next);
    });
    await Promise.all(readers);
    await group.settle();
    const after = sampleMemory(group);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return {
      readySeconds,
      restedSeconds,
      readyBytes: ready.serverBytes,
      readBytes: repositories.length === 0 ? null : after.serverBytes,
      databaseBytes: after.databaseBytes,
      entitiesBytes: metric(metrics, 'strata_entities_bytes'),
      heapBytes: metric(metrics, 'strata_nodejs_heap_size_used_bytes'),
    };
  } finally {
    await group.end();
  }
}

function metric(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
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

/**
 * Reads a repository's refs over Git and its branches over REST; repeats the latter while the read models are behind.
 */
async function read(port: number, { path: name, secret }: Repository): Promise<void> {
  const git = `http://127.0.0.1:${port}/r/${name}.git/info/refs?service=git-upload-pack`;
  const basic = `Basic ${Buffer.from(`${name.split('/')[0]}:${secret}`).toString('base64')}`;
  await expectOk(await fetch(git, { headers: { authorization: basic } }));
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/repos/${name}/branches`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    if (answer.status !== 503) return expectOk(answer);
    await answer.arrayBuffer();
  }
}

async function expectOk(answer: Response): Promise<void> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${text.slice(0, 200)}`);
}

function someOf(repositories: readonly Repository[]): readonly Repository[] {
  const dice = createDice(1);
  const chosen = new Set<Repository>();
  while (chosen.size < Math.min(READS, repositories.length)) chosen.add(dice.pick(repositories));
  return [...chosen];
}

function row(...cells: readonly string[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

const [events = 1_000_000, repositories = 100_000] = process.argv.slice(2).map(Number);
const load = os.loadavg()[0] ?? 0;
const folder = await mkdtemp(path.join(os.tmpdir(), 'strata-bench-'));
await chmod(folder, 0o711);
const mib = (bytes: number | null): string => (bytes === null ? '' : String(Math.round(bytes / MIB)));
try {
  console.log(`${describeMachine()}; memory in MiB: proportional set size, PostgreSQL’s apart\n`);
  row(
    'events',
    'repositories',
    'built s',
    'ready s',
    'at ready',
    `after ${READS} repositories`,
    'entities',
    'heap',
    'PostgreSQL',
  );
  row(...Array.from({ length: 9 }, () => '---'));
  for (const share of [0, 0.01, 1]) {
    const [count, held] = [Math.round(events * share), Math.round(repositories * share)];
    const dataDir = path.join(folder, `data-${count}`);
    const chosen = someOf(await makeLog(dataDir, count, held));
    const { restedSeconds } = await serve(dataDir, `build-${count}`, chosen.slice(0, 1));
    const served = await serve(dataDir, `serve-${count}`, chosen);
    const { readySeconds, readyBytes, readBytes, databaseBytes, entitiesBytes, heapBytes } = served;
    const figures = [restedSeconds.toFixed(1), readySeconds.toFixed(2)];
    row(
      String(count),
      String(held),
      ...figures,
      mib(readyBytes),
      mib(readBytes),
      mib(entitiesBytes),
      mib(heapBytes),
      mib(databaseBytes),
    );
    await rm(dataDir, { recursive: true });
  }
  if (load > QUIET_LOAD_MAX) console.log(`\nNot to be published: the machine had a load of ${load.toFixed(1)} before.`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
