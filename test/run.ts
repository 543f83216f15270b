/**
 * `npm test`: every `test/**` file named `*.test.ts`, each in a process of its own, on one PostgreSQL cluster
 * for the whole run. `npm test -- core/git scenarios` runs the files whose paths hold one of the words.
 *
 * Must stay true: exits with 0 only when at least one file was found and none failed; failures are shown in full;
 * what was skipped is named with its reason; the last line is `N passed, N failed, N skipped`.
 */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { importedModules } from './architecture/dependency-rule.ts';
import { projectTree, ROOT } from './architecture/source-tree.ts';
import { isThere, OPTIONAL_SUITES } from './support/optional-suites.ts';
import type { TestCounts } from './support/result-reporter.ts';
import { type FileResult, runTestFile } from './support/test-process.ts';

const FILE_TIMEOUT_MS = 5 * 60_000;
const SLOWEST_SHOWN = 5;

/** What test files have in common for the whole run, made when one of them reaches its module; later ones use earlier. */
interface Shared {
  readonly variable: string;
  readonly module: string;
  readonly start: () => Promise<{ readonly value: string; readonly end: () => Promise<void> }>;
}

const SHARED: readonly Shared[] = [
  {
    variable: 'STRATA_TEST_MADE_DATA_DIR',
    module: 'test/support/made-data-dir.ts',
    start: async () => {
      const { makeDataDir } = await import('./support/made-data-dir.ts');
      const { dataDir, remove } = await makeDataDir();
      return { value: dataDir, end: remove };
    },
  },
  {
    variable: 'STRATA_TEST_POSTGRES',
    module: 'test/support/postgres.ts',
    start: async () => {
      const { startTestCluster } = await import('./support/postgres.ts');
      const { connectionString, stop } = await startTestCluster();
      return { value: connectionString, end: stop };
    },
  },
];

function findFiles(words: readonly string[]): string[] {
  const files = globSync('test/**/*.test.ts', { cwd: ROOT, exclude: ['test/architecture/samples/**'] });
  return files.filter((file) => words.length === 0 || words.some((word) => file.includes(word))).sort();
}

/** Modules of the project that each module imports. */
type ImportsOf = (path: string) => readonly string[];

/** Each module is read once, however many test files reach it. */
function readImports(): ImportsOf {
  const tree = projectTree();
  const known = new Map<string, readonly string[]>();
  return (path) => {
    const imports = known.get(path) ?? importedModules(tree, path);
    known.set(path, imports);
    return imports;
  };
}

/** Whether a module imports another, directly or through others. */
function reaches(importsOf: ImportsOf, from: string, target: string, seen = new Set<string>()): boolean {
  if (from === target) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return importsOf(from).some((next) => reaches(importsOf, next, target, seen));
}

/** Files that start whole servers take longest: they come first, so that no long one is left to the end alone. */
function inOrder(files: readonly string[], importsOf: ImportsOf): readonly string[] {
  const startsServers = (file: string): boolean => reaches(importsOf, file, 'test/support/strata.ts');
  return [...files.filter(startsServers), ...files.filter((file) => !startsServers(file))];
}

/** Starts what the files reach and the caller has not brought, names it in the environment, and returns its ends. */
async function startShared(files: readonly string[], importsOf: ImportsOf): Promise<readonly (() => Promise<void>)[]> {
  const ends: (() => Promise<void>)[] = [];
  for (const { variable, module, start } of SHARED) {
    if (process.env[variable] !== undefined || !files.some((file) => reaches(importsOf, file, module))) continue;
    const { value, end } = await start();
    process.env[variable] = value;
    ends.unshift(end);
  }
  return ends;
}

function printResult(result: FileResult, verbose: boolean): void {
  const seconds = `${(result.durationMs / 1000).toFixed(1)} s`;
  const skips = result.skipped.length === 0 ? '' : `, ${result.skipped.length} skipped`;
  console.log(`${result.passed ? '✔' : '✖'} ${result.file}  ${result.counts.passed} passed${skips}, ${seconds}`);
  if (verbose || !result.passed) console.log(result.output.trimEnd().replace(/^/gm, '    '));
}

async function runAll(files: readonly string[], env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<FileResult[]> {
  const waiting = [...files];
  const results: FileResult[] = [];
  // Whoever names the files wants to see the tests in them.
  const verbose = files.length <= 3;
  const work = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined && !signal.aborted; file = waiting.shift()) {
      const result = await runTestFile({ root: ROOT, file, env, timeoutMs: FILE_TIMEOUT_MS, signal });
      results.push(result);
      printResult(result, verbose);
    }
  };
  // One more than there are cores: scenarios wait for clocks and disks much of their time.
  await Promise.all(Array.from({ length: availableParallelism() + 1 }, work));
  return results;
}

function sum(results: readonly FileResult[], count: keyof TestCounts): number {
  return results.reduce((total, result) => total + result.counts[count], 0);
}

function printDetails(results: readonly FileResult[]): void {
  const slowest = results.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_SHOWN);
  console.log('\nslowest files');
  for (const { file, durationMs } of slowest) console.log(`  ${(durationMs / 1000).toFixed(1).padStart(6)} s  ${file}`);
  const skipped = results.flatMap(({ file, skipped: tests }) => tests.map((skip) => ({ file, ...skip })));
  if (skipped.length > 0) console.log('\nskipped');
  for (const { file, test, reason } of skipped) console.log(`  ${file}: ${test} (${reason})`);
  const absent = OPTIONAL_SUITES.filter(({ part }) => !isThere(part));
  if (absent.length > 0) console.log('\noptional suites that did not run');
  for (const { name, part, command } of absent) console.log(`  ${name}, needs ${part}:\n    ${command}`);
  const failed = results.filter((result) => !result.passed);
  if (failed.length > 0) console.log('\nfailed');
  for (const { file, failed: tests } of failed) for (const test of tests) console.log(`  ${file}: ${test}`);
}

/** Node's own closing lines, summed over the files. */
function printClosingLines(results: readonly FileResult[], durationMs: number): void {
  const names = { tests: 'tests', suites: 'suites', passed: 'pass', failed: 'fail' } as const;
  const counts = { ...names, cancelled: 'cancelled', skipped: 'skipped', todo: 'todo' } as const;
  console.log();
  for (const [count, name] of Object.entries(counts))
    console.log(`ℹ ${name} ${sum(results, count as keyof TestCounts)}`);
  console.log(`ℹ duration_ms ${Math.round(durationMs)}`);
  const failed = sum(results, 'failed') + sum(results, 'cancelled');
  // Node counts tests only; a suite that is skipped whole is one line of the list above.
  const skipped = results.reduce((total, result) => total + result.skipped.length, 0);
  console.log(`${sum(results, 'passed')} passed, ${failed} failed, ${skipped} skipped`);
}

const start = performance.now();
const words = process.argv.slice(2);
const importsOf = readImports();
const files = inOrder(findFiles(words), importsOf);
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // Asked twice: something does not end in good order.
    if (stopped.signal.aborted) process.exit(1);
    stopped.abort();
  });
}
const ends = await startShared(files, importsOf);
let results: readonly FileResult[] = [];
try {
  results = await runAll(files, process.env, stopped.signal);
} finally {
  for (const end of ends) await end();
}
printDetails(results);
if (files.length === 0)
  console.log(`no test file under test/ ${words.length === 0 ? '' : `matches ${words.join(' or ')}`}`);
printClosingLines(results, performance.now() - start);
const complete = results.length === files.length && results.every(({ passed }) => passed);
process.exitCode = files.length > 0 && complete && !stopped.signal.aborted ? 0 : 1;
