/**
 * Runs one test file in a process of its own, and everything that process starts in a group with it.
 *
 * Must stay true: it ends, whatever the file does. One that loops, hangs, or leaves a child holding its output is
 * ended with its whole group when its time is over; one that ends without node's summary has failed.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { ResultLine, TestCounts } from './result-reporter.ts';

export interface FileResult {
  readonly file: string;
  readonly passed: boolean;
  /** Counts of node's summary; zeroes when the process did not get as far, so that one failure stands for it. */
  readonly counts: TestCounts;
  readonly failed: readonly string[];
  readonly skipped: readonly { readonly test: string; readonly reason: string }[];
  readonly durationMs: number;
  /** What the process wrote, in node's `spec` form, and why it was ended if it was. */
  readonly output: string;
}

export interface TestProcessOptions {
  readonly root: string;
  /** Below the root. */
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  /** Ends the process at once. */
  readonly signal: AbortSignal;
}

const NO_COUNTS: TestCounts = { tests: 0, suites: 0, passed: 0, failed: 0, cancelled: 0, skipped: 0, todo: 0 };
/** How long output may still arrive after the process has ended: a child it left may hold the pipe for ever. */
const LATE_OUTPUT_MS = 1_000;

/** Ends the processes of a group that are left; none left is what one hopes for. */
function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // macOS says EPERM of a group whose only member is waiting to be reaped.
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** What the results descriptor has told so far. */
interface Results {
  readonly failed: string[];
  readonly skipped: { readonly test: string; readonly reason: string }[];
  /** Tests that began and have not ended, as far as they are told: a process that loops tells nothing more. */
  readonly running: string[];
  counts: TestCounts | null;
}

function takeLine(results: Results, line: ResultLine): void {
  switch (line.kind) {
    case 'running':
      results.running.push(line.test);
      return;
    case 'done':
      results.running.splice(results.running.lastIndexOf(line.test), 1);
      return;
    case 'failed':
      results.failed.push(line.test);
      return;
    case 'skipped':
      results.skipped.push({ test: line.test, reason: line.reason });
      return;
    case 'summary':
      results.counts = line.counts;
      return;
  }
}

/** Why a process that ended has not passed, beyond the failures of its tests; null when it has. */
function complaint(
  results: Results,
  code: number | null,
  signal: NodeJS.Signals | null,
  stopped: string,
): string | null {
  if (stopped !== '') return stopped;
  if (signal !== null) return `ended by ${signal}`;
  if (results.counts === null) return `ended with exit code ${code} before its tests did, if it holds any`;
  // The tests of a skipped suite are not counted.
  if (results.counts.tests === 0 && results.skipped.length === 0) return 'holds suites without a test';
  return code === 0 || results.failed.length > 0 ? null : `ended with exit code ${code} though no test failed`;
}

/** Runs the file; when it resolves, its process has ended and what is left of its group was killed. */
export async function runTestFile(options: TestProcessOptions): Promise<FileResult> {
  const { root, file, timeoutMs } = options;
  const reporter = join(import.meta.dirname, 'result-reporter.ts');
  const args = [
    '--disable-warning=ExperimentalWarning',
    `--test-reporter=${reporter}`,
    '--test-reporter-destination=stdout',
  ];
  // Set by a test runner for its own children: this process would report to it rather than to us.
  const { NODE_TEST_CONTEXT: _, ...env } = options.env;
  const start = performance.now();
  const child = spawn(process.execPath, [...args, join(root, file)], {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${process.execPath} cannot be run`);
  let output = '';
  const collect = (text: string): void => void (output += text);
  child.stdout?.setEncoding('utf8').on('data', collect);
  child.stderr?.setEncoding('utf8').on('data', collect);
  const results: Results = { failed: [], skipped: [], running: [], counts: null };
  const lines = createInterface({ input: child.stdio[3] as Readable });
  lines.on('line', (line) => takeLine(results, JSON.parse(line) as ResultLine));

  let stopped = '';
  const stop = (reason: string): void => {
    stopped = reason;
    endGroup(pid);
  };
  const timer = setTimeout(() => stop(`ended after ${timeoutMs / 1000} s without an end`), timeoutMs);
  const onAbort = () => stop('ended with the run');
  options.signal.addEventListener('abort', onAbort);
  const closed = new Promise((resolve) => child.once('close', resolve));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once('exit', (...ending) => resolve(ending));
  });
  clearTimeout(timer);
  options.signal.removeEventListener('abort', onAbort);
  endGroup(pid);
  let late: NodeJS.Timeout | undefined;
  await Promise.race([closed, new Promise((resolve) => (late = setTimeout(resolve, LATE_OUTPUT_MS)))]);
  clearTimeout(late);
  lines.close();

  const reason = complaint(results, code, signal, stopped);
  if (reason !== null) {
    const running = results.running.length === 0 ? '' : `; running: ${results.running.join(', ')}`;
    output += `\n✖ ${file} ${reason}${running}\n`;
  }
  const counts = results.counts ?? NO_COUNTS;
  const failures = counts.failed + counts.cancelled;
  const passed = reason === null && failures === 0 && code === 0;
  return {
    file,
    passed,
    counts: passed || failures > 0 ? counts : { ...counts, failed: 1 },
    failed: reason === null ? results.failed : [...results.failed, reason],
    skipped: results.skipped,
    durationMs: performance.now() - start,
    output,
  };
}
