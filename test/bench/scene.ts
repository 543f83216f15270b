/**
 * A server of this project for a bench, in a process of its own on a PostgreSQL of its own, started again as often as
 * the bench wants.
 *
 * Invariants: a server starts with an empty cache on its disk. Everything is in a folder of its own and on the
 * loopback interface; whatever happens, what was started is ended and the folder removed.
 */
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { keepLog } from '../support/log.ts';
import { type Account, api } from '../support/strata.ts';
import { createProcessGroup, databaseCpuSeconds, type ProcessGroup } from './processes.ts';
import { findFreePort, waitUntilAnswering } from './sides/ports.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const GRACE_MS = 30_000;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** What the services of a bench share. */
export interface Ground {
  readonly folder: string;
  /** Steps to take at the end, the last one first. */
  readonly steps: (() => unknown)[];
}

/** One service. */
export interface Scene {
  readonly name: string;
  readonly ground: Ground;
  readonly dataDir: string;
  readonly port: number;
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  /** Seconds of all processors that its PostgreSQL has spent. */
  databaseCpuSeconds(): number;
  server: WatchedServer | null;
}

export interface WatchedServer {
  readonly group: ProcessGroup;
  /** The longest turn of the event loop since the last call. */
  longestTurnMs(): Promise<number>;
  end(): Promise<void>;
}

export async function onGround<Result>(run: (ground: Ground) => Promise<Result>): Promise<Result> {
  const steps: (() => unknown)[] = [];
  let cleaned: Promise<void> | null = null;
  // Once: a server must have ended before its database does.
  const cleanUp = (): Promise<void> => {
    cleaned ??= (async () => {
      for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step();
    })();
    return cleaned;
  };
  const end = (): void => void cleanUp().finally(() => process.exit(1));
  for (const signal of SIGNALS) process.once(signal, end);
  try {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'strata-bench-'));
    steps.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    // When root runs the bench, the embedded PostgreSQL runs as another user, who must be able to traverse this folder.
    await chmod(folder, 0o711);
    return await run({ folder, steps });
  } finally {
    await cleanUp();
    // One that stayed would end the process before a later ground is cleaned up.
    for (const signal of SIGNALS) process.off(signal, end);
  }
}

/** Prepares a service with a database. Its server is not started yet. */
export async function openScene(
  ground: Ground,
  name: string,
  settings: Readonly<Record<string, string>> = {},
  databaseSettings: Readonly<Record<string, string>> = {},
): Promise<Scene> {
  const [databaseDir, dataDir] = [path.join(ground.folder, `${name}-database`), path.join(ground.folder, name)];
  for (const directory of [databaseDir, dataDir]) await mkdir(directory, { mode: 0o711 });
  const place = { dataDir: databaseDir, settings: databaseSettings };
  const database = await startEmbeddedPostgres({ processFacts, log: keepLog(), ...place });
  ground.steps.push(() => database.stop());
  const port = await findFreePort();
  const own = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].startsWith('STRATA_'),
  );
  const env = {
    ...{ ...Object.fromEntries(own), NODE_ENV: 'production', STRATA_LOG_LEVEL: 'error', STRATA_RATE_FACTOR: '1000' },
    ...{ STRATA_PORT: String(port), STRATA_DATA_DIR: dataDir },
    STRATA_DATABASE_URL: database.connectionString,
    STRATA_DATABASE_OWNER_URL: database.ownerConnectionString,
    ...settings,
  };
  const spent = (): number => databaseCpuSeconds(database.pid() ?? 0);
  return { name, ground, dataDir, port, url: `http://localhost:${port}`, env, databaseCpuSeconds: spent, server: null };
}

/** Another node of a service whose settings name a master key and a folder of layers. Its server is not started yet. */
export async function openNode(scene: Scene, name: string): Promise<Scene> {
  const dataDir = path.join(scene.ground.folder, name);
  await mkdir(dataDir, { mode: 0o711 });
  const port = await findFreePort();
  const env = { ...scene.env, STRATA_PORT: String(port), STRATA_DATA_DIR: dataDir };
  return { ...scene, name, dataDir, port, url: `http://localhost:${port}`, env, server: null };
}

/** Starts a server, after the end of the one before it, that keeps nothing from that one but what is stored. */
export async function startServer(scene: Scene): Promise<WatchedServer> {
  await endServer(scene);
  await rm(path.join(scene.dataDir, 'cache'), { recursive: true, force: true });
  const group = createProcessGroup(`${scene.name}-${Date.now()}`, GRACE_MS);
  const watched = ['--import', path.join(import.meta.dirname, 'loop-watch.ts'), 'apps/server/main.ts'];
  const child = group.start(process.execPath, watched, {
    cwd: ROOT,
    env: scene.env,
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  let ended: Promise<void> | null = null;
  const server: WatchedServer = {
    group,
    async longestTurnMs() {
      const answered = once(child, 'message');
      child.send('longest');
      const [longestMs]: unknown[] = await answered;
      return Number(longestMs);
    },
    end() {
      ended ??= group.end();
      return ended;
    },
  };
  scene.ground.steps.push(() => server.end());
  const failed = once(child, 'exit').then(() => {
    throw new Error('The server ended');
  });
  // The server also exits when it is ended, when nothing awaits this promise any more.
  failed.catch(() => undefined);
  await Promise.race([waitUntilAnswering(`${scene.url}/readyz`, (status) => status === 200), failed]);
  scene.server = server;
  return server;
}

export async function endServer(scene: Scene): Promise<void> {
  await scene.server?.end();
  scene.server = null;
}

export async function createRepository(
  { url }: Scene,
  account: Account,
  name: string,
  defaultBranch = 'main',
): Promise<void> {
  const wanted = { name, default_branch: defaultBranch };
  const made = await api({ url }, account.token, 'POST', '/v1/repositories', wanted);
  if (made.status !== 201) throw new Error(`The repository was not created: ${made.status} ${made.text}`);
}
