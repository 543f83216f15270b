/**
 * Prints the end of a run, after vitest's own report: the slowest files, figures that tests measured, skipped tests
 * with their reasons, optional suites that did not run, processes that had to be killed, failures, and one line of
 * counts.
 *
 * Invariants: the last line is `N passed, N failed, N skipped`; the exit code is 0 only when at least one file ran
 * and nothing failed.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';
import { isThere, OPTIONAL_SUITES } from '../support/optional-suites.ts';
import type { ProcessPool, ProcessRemark } from './process-pool.ts';

const SLOWEST_SHOWN = 5;
/** The test files that failed in the last run, one a line, for `.ci/run`. Empty if something else failed. */
const FAILED_FILES = '.cache/failed-test-files';

interface FileResults {
  readonly passed: number;
  /** Names of failed tests, and other failures. */
  readonly failed: readonly string[];
  readonly skipped: readonly { readonly test: string; readonly reason: string }[];
  /** Tests without a result, since their process ended before them. */
  readonly unfinished: readonly string[];
  readonly figures: readonly string[];
}

const NOTHING: FileResults = { passed: 0, failed: [], skipped: [], unfinished: [], figures: [] };

export function createRunReporter({ root, pool }: { readonly root: string; readonly pool: ProcessPool }): Reporter {
  let files: readonly string[] = [];
  return {
    onTestRunStart: (specifications) => {
      files = specifications.map(({ moduleId }) => relative(root, moduleId));
    },
    async onTestRunEnd(modules, unhandled) {
      // The last processes are still exiting, and may fail while they do.
      await pool.ended();
      const results = new Map(modules.map((module) => [module.relativeModuleId, resultsOf(module)]));
      // Errors that the pool reported to vitest are in the pool's own list.
      const thrown = unhandled.filter(
        ({ message }) => pool.failures.length === 0 || !message.startsWith('[vitest-pool]'),
      );
      const failed = [
        ...failuresOf(files, results, pool.failures),
        ...thrown.map(({ message, VITEST_TEST_PATH: path }) => {
          const file = typeof path === 'string' ? relative(root, path) : 'outside the test files';
          return lineOf({ file, text: `threw outside its tests: ${message}` });
        }),
      ];
      printSlowest(modules);
      printList(
        'figures',
        [...results.values()].flatMap(({ figures }) => figures),
      );
      printList(
        'skipped',
        [...results].flatMap(([file, { skipped }]) =>
          skipped.map(({ test, reason }) => `${file}: ${test} (${reason})`),
        ),
      );
      const absent = OPTIONAL_SUITES.filter(({ part }) => !isThere(part));
      printList(
        'optional suites that did not run',
        absent.map(({ name, part, command }) => `${name}, needs ${part}:\n    ${command}`),
      );
      printList('left running by test files, and ended', pool.leftovers.map(lineOf));
      printList('failed', failed);
      noteFailed(join(root, FAILED_FILES), failed);
      if (files.length === 0) console.log('\nFiles that take minutes are run by npm run test:long.');
      const passed = sum(results, (file) => file.passed);
      const skipped = sum(results, (file) => file.skipped.length);
      const line = `${passed} passed, ${failed.length} failed, ${skipped} skipped`;
      // Printed at exit, since vitest still prints errors from outside the tests.
      process.once('exit', () => console.log(line));
      if (files.length === 0 || failed.length > 0) process.exitCode = 1;
    },
  };
}

/** Groups the tests of a file by result; a suite that is skipped as a whole counts as one skip. */
function resultsOf(module: TestModule): FileResults {
  let passed = 0;
  const failed: string[] = [];
  const skipped: FileResults['skipped'][number][] = [];
  const unfinished: string[] = [];
  const figures: string[] = [];
  const note = (task: TestCase | TestSuite): void => {
    const { skippedFor } = task.meta();
    if (skippedFor !== undefined) {
      skipped.push({ test: task.fullName, reason: skippedFor });
      return;
    }
    if (task.type === 'suite') {
      if (task.errors().length > 0) failed.push(`${task.fullName} (outside its tests)`);
      for (const child of task.children) note(child);
      return;
    }
    const result = task.result();
    figures.push(...(task.meta().figures ?? []));
    if (result.state === 'passed') passed += 1;
    if (result.state === 'failed') failed.push(task.fullName);
    if (result.state === 'pending') unfinished.push(task.fullName);
    // Vitest also marks tests as skipped whose suite failed before them, or that the caller's name pattern excludes.
    const leftOut = task.options.mode !== 'run' && task.project.config.testNamePattern === undefined;
    const left = result.state === 'skipped' && (result.note !== undefined || leftOut);
    if (left) skipped.push({ test: task.fullName, reason: result.note ?? 'no reason' });
  };
  if (module.errors().length > 0) failed.push('outside its tests');
  for (const child of module.children) note(child);
  return { passed, failed, skipped, unfinished, figures };
}

/** Returns one line for each failure. A file without any result has failed too. */
function failuresOf(
  files: readonly string[],
  results: ReadonlyMap<string, FileResults>,
  ofProcesses: readonly ProcessRemark[],
): readonly string[] {
  return files.flatMap((file) => {
    const { passed, failed, skipped, unfinished } = results.get(file) ?? NOTHING;
    const remarks = ofProcesses.filter((remark) => remark.file === file).map(({ text }) => text);
    const unknown = passed + failed.length + skipped.length === 0 || unfinished.length > 0;
    const reasons = remarks.length === 0 && failed.length === 0 && unknown ? ['did not come to its end'] : remarks;
    const running = unfinished.length === 0 ? '' : `; not known to have ended: ${unfinished.join(', ')}`;
    return [...failed, ...reasons.map((reason) => `${reason}${running}`)].map((text) => lineOf({ file, text }));
  });
}

function printSlowest(modules: readonly TestModule[]): void {
  const timed = modules.map((module) => ({
    file: module.relativeModuleId,
    seconds: module.diagnostic().duration / 1000,
  }));
  const slowest = timed.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST_SHOWN);
  printList(
    'slowest files',
    slowest.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(6)} s  ${file}`),
  );
}

function noteFailed(path: string, failed: readonly string[]): void {
  const files = new Set(failed.map((line) => line.slice(0, line.indexOf(': '))));
  const known = [...files].every((file) => file.endsWith('.test.ts'));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, known ? [...files].map((file) => `${file}\n`).join('') : '');
}

function printList(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`\n${title}\n${lines.map((line) => `  ${line}`).join('\n')}`);
}

function lineOf({ file, text }: ProcessRemark): string {
  return `${file}: ${text}`;
}

function sum(results: ReadonlyMap<string, FileResults>, count: (file: FileResults) => number): number {
  return [...results.values()].reduce((total, file) => total + count(file), 0);
}
