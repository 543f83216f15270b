/**
 * A real Temporal server beside the servers of a scenario: the CLI's development server, on a database file of its own.
 *
 * Invariants: it listens on the loopback interface only and is ended by its pid; the file holds everything that it
 * accepted, however it ends.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { cleanUp, type Ending } from '../cleanup.ts';
import { freePort } from '../free-port.ts';
import { tempDir } from '../temp-dir.ts';
import { findTool } from '../tools.ts';

const READY_SPAN_MS = 60_000;
const NAMESPACE = 'strata';

export interface TemporalServer {
  /** Settings for a Strata server that uses it. */
  readonly env: Readonly<Record<string, string>>;
  /** Resolves when it serves, on the file it had before, or on an empty one. */
  start(file?: 'same' | 'empty'): Promise<void>;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
}

/** Returns a server that is not started yet; it ends with the test. */
export async function temporalServer(context: Ending): Promise<TemporalServer> {
  const program = findTool('temporal');
  if (program === null) throw new TypeError('The program temporal is not installed');
  const folder = await tempDir(context);
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  // The CLI must not read its user's own settings.
  const options = { env: { PATH: process.env['PATH'] ?? '', HOME: folder } };
  let child: ChildProcess | null = null;
  let files = 0;

  async function isServing(): Promise<boolean> {
    try {
      const health = ['--address', address, '--command-timeout', '2s', 'operator', 'cluster', 'health'];
      const { stdout } = await promisify(execFile)(program ?? '', health, options);
      if (!stdout.includes('SERVING')) return false;
      const describe = ['--address', address, 'operator', 'namespace', 'describe', '--namespace', NAMESPACE];
      await promisify(execFile)(program ?? '', describe, options);
      return true;
    } catch {
      // The command fails for many reasons; most often the server is still starting.
      return false;
    }
  }

  async function start(file: 'same' | 'empty' = 'same'): Promise<void> {
    if (file === 'empty') files += 1;
    const words = ['--headless', '--ip', '127.0.0.1', '--port', String(port), '--namespace', NAMESPACE];
    const kept = ['--db-filename', path.join(folder, `temporal-${files}.db`), '--log-level', 'error'];
    const started = spawn(program ?? '', ['server', 'start-dev', ...words, ...kept], {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    let written = '';
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (text: Buffer) => (written += String(text)));
    for (const deadline = Date.now() + READY_SPAN_MS; !(await isServing()); ) {
      if (started.exitCode !== null || Date.now() > deadline) throw new Error(`Temporal does not serve:\n${written}`);
      await sleep(100);
    }
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  cleanUp(context, kill);
  return {
    env: { STRATA_WORKFLOWS: 'temporal', STRATA_TEMPORAL_ADDRESS: address, STRATA_TEMPORAL_NAMESPACE: NAMESPACE },
    start,
    kill,
  };
}
