/**
 * A server in a process of its own with embedded parts, and what can be read of it from outside: its faults, memory,
 * files and processes.
 *
 * Invariants: the server is ended by its pid. Its log is read as it comes, and only lines of faults are kept.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { readText } from '../bench/processes.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { SERVER_COMMAND } from '../support/server-command.ts';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const READY_SPAN_MS = 60_000;
const PAGE_BYTES = 4_096;

export interface Service {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  isRunning(): boolean;
  /** The lines about faults that it has written since the last call, oldest first. */
  takeFaults(): readonly string[];
  /** Resident memory of the server and its children but PostgreSQL. */
  memoryBytes(): number;
  descriptors(): number;
}

/** What the log says of faults: an error of a request, a fault that was survived, and text that is no log line. */
function isFault(line: string): boolean {
  return (
    !line.startsWith('{') || /"level":"(error|fatal)"/.test(line) || /unhandled|Recovered from an error/i.test(line)
  );
}

/** Settings of servers that take inputs. */
export const FUZZED_SETTINGS: Readonly<Record<string, string>> = {
  STRATA_BYO_REQUIRES_PLAN: 'false',
  // Nothing leaves the loopback interface, where nobody listens at this port.
  STRATA_ALLOW_PRIVATE_TARGETS: 'true',
  STRATA_STS_ENDPOINT: 'http://127.0.0.1:9',
  STRATA_OIDC_S3_ENDPOINT: 'http://127.0.0.1:9',
  // Each input comes from an address of its own.
  STRATA_TRUSTED_PROXIES: '127.0.0.1',
};

export async function startService(ending: Ending, settings = FUZZED_SETTINGS): Promise<Service> {
  const [dataDir, port] = [await tempDir(ending), await freePort()];
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith('STRATA_'));
  const env = {
    ...Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    STRATA_PORT: `${port}`,
    STRATA_DATA_DIR: dataDir,
    STRATA_LOG_LEVEL: 'warn',
    ...settings,
  };
  const child = spawn(process.execPath, SERVER_COMMAND, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const faults: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      if (isFault(line)) faults.push(line);
    });
  }
  const exited = once(child, 'exit');
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  cleanUp(ending, async () => {
    if (isRunning()) child.kill('SIGTERM');
    await exited;
    if (child.exitCode !== 0) throw new Error(`The server ended with ${child.exitCode ?? child.signalCode}`);
  });
  const url = `http://localhost:${port}`;
  const { pid } = child;
  if (pid === undefined) throw new Error('The server could not be started');
  const deadline = Date.now() + READY_SPAN_MS;
  while (!(await isReady(url))) {
    if (!isRunning() || Date.now() > deadline) throw new Error(`The server does not get ready:\n${faults.join('\n')}`);
    await sleep(50);
  }
  return {
    ...{ url, port, pid, dataDir, env, isRunning },
    takeFaults: () => faults.splice(0),
    memoryBytes: () => memoryBytes(pid),
    descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).status === 200;
  } catch {
    return false;
  }
}

/**
 * proc(5): field 2 of `statm` is the resident set in pages; `children` lists the processes that each thread started.
 */
function memoryBytes(pid: number): number {
  if (readText(`/proc/${pid}/comm`).trim() === 'postgres') return 0;
  const own = Number(readText(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES;
  return childrenOf(pid).reduce((sum, child) => sum + memoryBytes(child), own);
}

function childrenOf(pid: number): readonly number[] {
  let threads: readonly string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    // The process has ended since.
    return [];
  }
  const listed = threads.map((thread) => readText(`/proc/${pid}/task/${thread}/children`));
  return listed.join(' ').split(' ').filter(Boolean).map(Number);
}
