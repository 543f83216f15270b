/** Starts test/support/embedded-server.ts and reads the line it prints. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { cleanUp, type Ending } from '../../support/cleanup.ts';

export interface ServerProcess {
  readonly child: ChildProcess;
  /** Resolves with the first line that it prints: the PostgreSQL that it started, or the error. */
  readonly firstLine: Promise<{ connectionString?: string; pid?: number; code?: string; message?: string }>;
  kill(): Promise<void>;
}

export function startServerProcess(context: Ending, dataDir: string, options: SpawnOptions = {}): ServerProcess {
  const script = path.join(import.meta.dirname, '../../support/embedded-server.ts');
  const child = spawn(process.execPath, [script, dataDir], { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  cleanUp(context, async () => {
    child.stdin?.end();
    await ended;
  });
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  const firstLine = readLine(child);
  // A test that kills the process early does not await the line.
  firstLine.catch(() => {});
  return { child, firstLine, kill };
}

async function readLine(child: ChildProcess): Promise<object> {
  if (child.stdout === null) throw new TypeError('The server has no output');
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line);
  throw new Error('The server ended without printing a line');
}
