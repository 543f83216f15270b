/**
 * The server of a soak: a process of its own on embedded parts, which prunes and sweeps as soon as it may.
 *
 * Invariants: it is ended by its pid; nothing but its faults and the end of its log is kept in memory.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { joinEmbeddedPostgres } from '../../adapters/embedded-postgres/join.ts';
import { freePort } from '../support/free-port.ts';
import { SERVER_COMMAND } from '../support/server-command.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const READY_SPAN_MS = 120_000;
const STOP_SPAN_MS = 60_000;
const TAIL_CHARACTERS = 4_000;
const FAULTS_KEPT = 20;
const MIB = 1024 * 1024;

/** In bytes, as `process.memoryUsage` names them: the heap, and what libraries in C++ and buffers take beside it. */
const OWN_MEMORY = z.object({ heapUsed: z.number(), external: z.number() });

export interface SoakServer {
  readonly url: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly pid: number;
  /** Connects as the owner of the database. */
  readonly database: string;
  /**
   * Lines of its log that tell of a fault; at most 20, and how many there were. A request that its client has cut is no
   * fault, whatever status its line has. `waits` counts faults that a busy machine makes: PostgreSQL had no time for
   * the server, or the server none for its connections, and it went on.
   */
  faults(): { readonly count: number; readonly lines: readonly string[]; readonly waits: number };
  /** What Node says of its memory after a collection. */
  memory(): z.infer<typeof OWN_MEMORY>;
  /** Why it ended; null while it runs. */
  ended(): string | null;
  /** Ends it, and resolves with what was wrong about its end; null for nothing. */
  stop(): Promise<string | null>;
}

/** `env` is added to the settings of a soak. Throws with the end of the log if the server does not start. */
export async function startServer(folder: string, env: Readonly<Record<string, string>>): Promise<SoakServer> {
  const dataDir = path.join(folder, 'data');
  const memoryFile = path.join(folder, 'memory.json');
  await writeFile(memoryFile, JSON.stringify({ heapUsed: 0, external: 0 }));
  const port = await freePort();
  const settings = { ...settingsOf(dataDir, port), SOAK_MEMORY_FILE: memoryFile, ...env };
  const child = spawn(process.execPath, SERVER_COMMAND, {
    cwd: ROOT,
    env: settings,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = keepFaults();
  child.stdout.on('data', log.add);
  child.stderr.on('data', log.add);
  const exited = once(child, 'exit');
  const ended = (): string | null =>
    child.exitCode === null && child.signalCode === null ? null : `${child.exitCode ?? child.signalCode}`;
  for (const begun = Date.now(); !log.isReady(); await sleep(50)) {
    if (ended() === null && Date.now() - begun < READY_SPAN_MS) continue;
    child.kill('SIGKILL');
    throw new Error(`The server did not start:\n${log.tail()}`);
  }
  const { connectionString, ownerConnectionString } = await joinEmbeddedPostgres(dataDir);
  return {
    url: `http://localhost:${port}`,
    dataDir,
    env: { ...settings, STRATA_DATABASE_URL: connectionString },
    pid: child.pid ?? 0,
    database: ownerConnectionString ?? connectionString,
    faults: log.faults,
    memory: () => OWN_MEMORY.parse(JSON.parse(readFileSync(memoryFile, 'utf8'))),
    ended,
    async stop() {
      if (ended() !== null) return `it had ended before: ${ended()}\n${log.tail()}`;
      child.kill('SIGTERM');
      const late = AbortSignal.timeout(STOP_SPAN_MS);
      late.addEventListener('abort', () => child.kill('SIGKILL'), { once: true });
      await exited;
      return child.exitCode === 0 ? null : `it ended with ${ended()}\n${log.tail()}`;
    },
  };
}

function settingsOf(dataDir: string, port: number): Record<string, string> {
  const own = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].startsWith('STRATA_'),
  );
  const loaded = ['../support/quick-intervals.ts', './probe.ts'].map(
    (file) => `--import=${pathToFileURL(path.join(import.meta.dirname, file)).href}`,
  );
  return {
    ...Object.fromEntries(own),
    NODE_OPTIONS: loaded.join(' '),
    // Every sweep that is rare in production, every ten seconds.
    QUICK_INTERVALS_MS: '10000',
    STRATA_PORT: String(port),
    STRATA_DATA_DIR: dataDir,
    STRATA_LOG_LEVEL: 'info',
    STRATA_RETENTION_DAYS: '0',
    STRATA_CACHE_BYTES_MAX: String(64 * MIB),
    // Each client has an address of its own, as behind a proxy.
    STRATA_TRUSTED_PROXIES: '127.0.0.1,::1',
  };
}

const WAITED = /timeout exceeded when trying to connect|error 57P05|"code":"read-model-behind"/;

/** Reads a log line by line, and keeps what tells of a fault. */
function keepFaults() {
  let rest = '';
  let tail = '';
  let ready = false;
  let count = 0;
  let waits = 0;
  const lines: string[] = [];
  return {
    add: (chunk: Buffer): void => {
      const text = rest + chunk.toString('utf8');
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      tail = (tail + chunk.toString('utf8')).slice(-TAIL_CHARACTERS);
      for (const line of text.slice(0, end).split('\n')) {
        ready ||= line.includes('Strata is ready');
        if (!/"level":"(error|fatal)"|[Uu]nhandled/.test(line)) continue;
        if (WAITED.test(line)) {
          waits += 1;
          continue;
        }
        count += 1;
        if (lines.length < FAULTS_KEPT) lines.push(line.slice(0, 1_000));
      }
    },
    isReady: () => ready,
    tail: () => tail,
    faults: () => ({ count, lines, waits }),
  };
}
