/**
 * Starts real servers of EventStoreDB for tests, by the program that STRATA_EVENTSTORE_SERVER names (docs/event-log.md,
 * How it is tested).
 *
 * Invariants: each server is a new one, on a free port and an empty folder of its own, and ends with its test.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUp, type Ending } from '../cleanup.ts';
import { freePort } from '../free-port.ts';
import { tempDir } from '../temp-dir.ts';

/** A real server checks its folder before it answers. */
const START_SPAN_MS = 60_000;
/** A real server writes its last chunk before it ends. */
const STOP_SPAN_MS = 30_000;
const STDERR_SHOWN_CHARS = 2_000;

/** Returns the program's path; null when none is named. */
export function serverProgram(): string | null {
  const program = process.env['STRATA_EVENTSTORE_SERVER'] ?? '';
  return program === '' ? null : program;
}

/** Starts a server until the test ends, and returns its address as STRATA_EVENTSTORE_URL takes it. */
export async function startServerProgram(ending: Ending, program: string): Promise<string> {
  const [port, folder] = [await freePort(), await tempDir(ending)];
  const child = spawn(program, [String(port), folder], { stdio: ['pipe', 'pipe', 'pipe'] });
  let failure = '';
  child.stderr.on('data', (chunk: Buffer) => {
    failure = `${failure}${chunk.toString('utf8')}`.slice(-STDERR_SHOWN_CHARS);
  });
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      failure += error.message;
      resolve();
    });
    child.once('exit', () => resolve());
  });
  cleanUp(ending, async () => {
    const tooLate = setTimeout(() => child.kill('SIGKILL'), STOP_SPAN_MS);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(tooLate);
  });
  const printed = createInterface(child.stdout);
  const address = new Promise<string>((resolve) => {
    printed.on('line', (line) => {
      if (line.startsWith('esdb')) resolve(line.trim());
    });
  });
  const late = new AbortController();
  const first = await Promise.race([
    address,
    ended,
    sleep(START_SPAN_MS, undefined, { signal: late.signal, ref: false }),
  ]);
  late.abort();
  if (typeof first === 'string') return first;
  throw new Error(`${program} printed no line that begins with esdb:\n${failure}`);
}
