/**
 * The runner of `npm test`, copied into projects of its own with tests that misbehave: a runner that loses a
 * failure makes every other test worthless.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runTestFile } from './support/test-process.ts';

const scratch = mkdtempSync(join(tmpdir(), 'strata-run-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const SUPPORT = ['optional-suites', 'temporal-tools', 'result-reporter', 'test-process'].map(
  (name) => `test/support/${name}.ts`,
);
const RUNNER = ['test/run.ts', 'test/architecture', ...SUPPORT];

function project(files: { readonly [path: string]: string }): string {
  const root = mkdtempSync(join(scratch, 'project-'));
  for (const file of RUNNER) cpSync(join(import.meta.dirname, '..', file), join(root, file), { recursive: true });
  rmSync(join(root, 'test/architecture/samples'), { recursive: true });
  for (const name of ['dependencies', 'imports', 'layout', 'portability', 'tools']) {
    rmSync(join(root, `test/architecture/${name}.test.ts`));
  }
  spawnSync('git', ['init', '--quiet'], { cwd: root });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly lastLine: string | undefined;
}

function npmTest(root: string, ...words: string[]): Ended {
  const { STRATA_TEST_POSTGRES: _, STRATA_TEST_MADE_DATA_DIR: __, ...env } = process.env;
  const { status, stdout } = spawnSync(process.execPath, ['test/run.ts', ...words], {
    cwd: root,
    env,
    encoding: 'utf8',
  });
  return { status, stdout, lastLine: stdout.trimEnd().split('\n').at(-1) };
}

const PASSES = `import { test } from 'node:test';\ntest('is well', () => {});\n`;
const FAILS = `import { test } from 'node:test';\ntest('is ill', () => { throw new Error('cough'); });\n`;

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Resolves when the process has ended, be it as a zombie that its new parent has yet to reap. */
async function untilEnded(pid: number): Promise<void> {
  // Signal 0 to process 0 reaches the caller's own group, which would be waited for without an end.
  assert.ok(Number.isInteger(pid) && pid > 0, `the process id of a test, not ${pid}`);
  while (isRunning(pid)) {
    const { stdout } = spawnSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' });
    if (stdout.includes(') Z ')) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('npm test', () => {
  test('passes when all pass, and counts them', () => {
    const ended = npmTest(project({ 'test/a.test.ts': PASSES, 'test/core/b.test.ts': PASSES }));
    assert.deepEqual([ended.status, ended.lastLine], [0, '2 passed, 0 failed, 0 skipped']);
  });

  test('fails when one fails, shows it in full and names it at the end', () => {
    const ended = npmTest(project({ 'test/a.test.ts': PASSES, 'test/b.test.ts': FAILS }));
    assert.deepEqual([ended.status, ended.lastLine], [1, '1 passed, 1 failed, 0 skipped']);
    assert.match(ended.stdout, /Error: cough\n\s+at /);
    assert.match(ended.stdout, /\nfailed\n {2}test\/b\.test\.ts: is ill\n/);
  });

  test('names what was skipped with its reason, tests and whole suites alike', () => {
    const source = [
      `import { describe, test } from 'node:test';`,
      `describe('git', () => { test('pushes', { skip: 'no git' }, () => {}); test('fetches', () => {}); });`,
      `describe('the log', { skip: 'needs STRATA_X' }, () => { test('appends', () => {}); });`,
    ];
    const ended = npmTest(project({ 'test/a.test.ts': source.join('\n') }));
    assert.deepEqual([ended.status, ended.lastLine], [0, '1 passed, 0 failed, 2 skipped']);
    assert.match(ended.stdout, /test\/a\.test\.ts: git > pushes \(no git\)/);
    assert.match(ended.stdout, /test\/a\.test\.ts: the log \(needs STRATA_X\)/);
  });

  test('runs the files whose paths hold a word, and fails when none does', () => {
    const root = project({ 'test/core/a.test.ts': PASSES, 'test/apps/b.test.ts': FAILS });
    assert.equal(npmTest(root, 'core/a').lastLine, '1 passed, 0 failed, 0 skipped');
    assert.equal(npmTest(root, 'nothing').status, 1);
  });

  test('starts the cluster once, for files that reach it, and stops it', () => {
    const cluster = `import { appendFileSync } from 'node:fs';
export async function startTestCluster() {
  appendFileSync('cluster.log', 'start ');
  return { connectionString: 'postgres://here', stop: async () => appendFileSync('cluster.log', 'stop ') };
}\n`;
    const reaches = `import './support/pool.ts';
import { test } from 'node:test';
import assert from 'node:assert/strict';
test('has one', () => assert.equal(process.env.STRATA_TEST_POSTGRES, 'postgres://here'));\n`;
    const root = project({
      'test/support/postgres.ts': cluster,
      'test/support/pool.ts': `import type {} from './postgres.ts';\n`,
      'test/a.test.ts': reaches,
      'test/b.test.ts': reaches,
      'test/c.test.ts': PASSES,
    });
    assert.equal(npmTest(root, 'c.test').lastLine, '1 passed, 0 failed, 0 skipped');
    assert.equal(existsSync(join(root, 'cluster.log')), false);
    assert.equal(npmTest(root).lastLine, '3 passed, 0 failed, 0 skipped');
    assert.equal(readFileSync(join(root, 'cluster.log'), 'utf8'), 'start stop ');
  });

  test('stopped from outside, ends its tests and fails', { timeout: 60_000 }, async () => {
    const endless = `import { test } from 'node:test';\nimport { renameSync, writeFileSync } from 'node:fs';
test('goes on', async () => { writeFileSync('pid.new', String(process.pid)); renameSync('pid.new', 'pid'); await new Promise((r) => setTimeout(r, 6e5)); });\n`;
    const root = project({ 'test/a.test.ts': endless });
    const running = spawn(process.execPath, ['test/run.ts'], { cwd: root, stdio: 'ignore' });
    const ended = new Promise((resolve) => running.once('exit', resolve));
    while (!existsSync(join(root, 'pid'))) await new Promise((resolve) => setTimeout(resolve, 20));
    running.kill('SIGTERM');
    assert.equal(await ended, 1);
    await untilEnded(Number(readFileSync(join(root, 'pid'), 'utf8')));
  });
});

describe('a test file fails when it', { concurrency: 4 }, () => {
  const IMPORT = `import { test } from 'node:test';`;
  const samples: readonly [string, string, RegExp][] = [
    ['has a failing test', FAILS, /is ill/],
    ['cannot be read', 'const = 1;', /exit code 1 before its tests did/],
    ['imports what is not there', `import './nothing.ts';`, /exit code 1 before its tests did/],
    ['holds no test', 'export {};', /exit code 0 before its tests did/],
    [
      'holds a suite without a test',
      `import { describe } from 'node:test'; describe('a', () => {});`,
      /without a test/,
    ],
    ['leaves in the middle', `${IMPORT} test('a', () => process.exit(0)); test('b', () => {});`, /exit code 0 before/],
    ['dies', `${IMPORT} test('a', () => process.kill(process.pid, 'SIGKILL'));`, /ended by SIGKILL/],
    [
      'throws after its test ended',
      `${IMPORT} test('a', () => { setTimeout(() => { throw new Error('late'); }, 10); }); test('b', () => new Promise((r) => setTimeout(r, 100)));`,
      /exit code 1 though no test failed/,
    ],
    ['never stops looping', `${IMPORT} test('a', () => { for (;;); });`, /ended after 5 s/],
    [
      'waits for ever',
      `${IMPORT} test('a', () => new Promise(() => setInterval(() => {}, 1e3)));`,
      /ended after 5 s.*running: a/,
    ],
    ['leaves a timer behind', `${IMPORT} test('a', () => { setInterval(() => {}, 1e3); });`, /ended after 5 s/],
  ];
  for (const [name, source, reason] of samples) {
    test(name, async () => {
      const root = project({ 'test/a.test.ts': source });
      const timeoutMs = reason.source.startsWith('ended after 5 s') ? 5_000 : 60_000;
      const options = { root, file: 'test/a.test.ts', env: process.env, timeoutMs };
      const result = await runTestFile({ ...options, signal: new AbortController().signal });
      assert.equal(result.passed, false, result.output);
      assert.match([...result.failed, result.output].join('\n'), reason);
      assert.ok(result.counts.failed + result.counts.cancelled > 0, 'the closing lines count it');
    });
  }
});

test('what a test file leaves running is ended with it, even when it holds its output', {
  timeout: 60_000,
}, async () => {
  const source = `import { spawn } from 'node:child_process';\nimport { writeFileSync } from 'node:fs';
import { test } from 'node:test';
test('a', () => { const left = spawn('sleep', ['600'], { stdio: 'inherit' }); left.unref(); writeFileSync('pid', String(left.pid)); });\n`;
  const root = project({ 'test/a.test.ts': source });
  const options = { root, file: 'test/a.test.ts', env: process.env, timeoutMs: 60_000 };
  const result = await runTestFile({ ...options, signal: new AbortController().signal });
  assert.equal(result.passed, true, result.output);
  await untilEnded(Number(readFileSync(join(root, 'pid'), 'utf8')));
});
