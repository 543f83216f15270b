/**
 * Runs vitest with this project's settings in scratch projects whose tests misbehave: a run that misses a failure would
 * make every other test worthless.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ROOT } from '../architecture/source-tree.ts';

const scratch = mkdtempSync(join(tmpdir(), 'strata-run-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const SUPPORT = [
  'after-process',
  'chromium',
  'optional-suites',
  'figures',
  'skipped',
  'test-git',
  'tools',
  'cloud/network',
];
const COPIED = [
  '.gitignore',
  'test/vitest',
  ...['dependency-rule', 'imports', 'source-tree'].map((name) => `test/architecture/${name}.ts`),
  ...SUPPORT.map((name) => `test/support/${name}.ts`),
];
const SHORT_LIMITS = `import { configOf } from './config.ts';
export default configOf({ fileMsMax: 5_000, longFileMsMax: 60_000, lingerMsMax: 2_000 });\n`;
function project(files: { readonly [path: string]: string }): string {
  const root = mkdtempSync(join(scratch, 'project-'));
  for (const file of COPIED) cpSync(join(ROOT, file), join(root, file), { recursive: true });
  rmSync(join(root, 'test/vitest/run.test.ts'));
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, '.gitignore'), 'node_modules\n.cache\n');
  spawnSync('git', ['init', '--quiet'], { cwd: root });
  const all = { 'package.json': '{"type":"module"}', 'test/vitest/short-limits.ts': SHORT_LIMITS, ...files };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function startTests(root: string, ...words: string[]) {
  const { STRATA_TEST_POSTGRES: _, STRATA_TEST_MADE_DATA_DIR: __, ...given } = process.env;
  // Leaves out the variables that vitest sets for the processes it starts.
  const env = Object.fromEntries(Object.entries(given).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name)));
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--configLoader', 'native'];
  return spawn(process.execPath, [...vitest, '--config', 'test/vitest/short-limits.ts', ...words], {
    cwd: root,
    env: { ...env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

interface Ended {
  readonly status: number | null;
  readonly output: string;
  readonly lastLine: string | undefined;
}

async function npmTest(root: string, ...words: string[]): Promise<Ended> {
  const child = startTests(root, ...words);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => void (output += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => void (output += chunk));
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { status, output, lastLine: output.trimEnd().split('\n').at(-1) };
}

/** Returns the lines below a heading of the closing report. */
function listed({ output }: Ended, heading: string): readonly string[] {
  const [, list = ''] = output.split(`\n${heading}\n`);
  return (list.split(/\n(?! )/)[0] ?? '').split('\n').map((line) => line.trim());
}

const IMPORT = `import { describe, test } from 'vitest';\n`;
const PASSES = `${IMPORT}test('is well', () => {});\n`;
const FAILS = `${IMPORT}test('is ill', () => { throw new Error('cough'); });\n`;

const ENDED_WITHIN_MS = 30_000;

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Resolves when the process has ended, also as a zombie that its new parent has not reaped yet. */
async function untilEnded(pid: number): Promise<void> {
  // Signal 0 to process 0 tests the caller's own group, so the wait would never end.
  assert.ok(Number.isInteger(pid) && pid > 0, `the process id of a test, not ${pid}`);
  const deadline = performance.now() + ENDED_WITHIN_MS;
  while (isRunning(pid)) {
    assert.ok(performance.now() < deadline, `process ${pid} is still running`);
    const { stdout } = spawnSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' });
    if (stdout.includes(') Z ')) return;
    await sleep(20);
  }
}

describe('npm test', () => {
  test('passes when all pass, and counts them', async () => {
    const ended = await npmTest(project({ 'test/a.test.ts': PASSES, 'test/core/b.test.ts': PASSES }));
    assert.deepEqual([ended.status, ended.lastLine], [0, '2 passed, 0 failed, 0 skipped'], ended.output);
  });

  test('fails when one fails, shows it in full with what it printed, and names it at the end', async () => {
    const prints = `console.log('before the cough'); process.stdout.write('past the console');`;
    const fails = FAILS.replace('throw', `${prints} throw`);
    const ended = await npmTest(project({ 'test/a.test.ts': PASSES, 'test/b.test.ts': fails }));
    assert.deepEqual([ended.status, ended.lastLine], [1, '1 passed, 1 failed, 0 skipped'], ended.output);
    assert.match(ended.output, /Error: cough\n.*test\/b\.test\.ts:/);
    assert.match(ended.output, /before the cough/);
    assert.match(ended.output, /past the console/);
    assert.deepEqual(listed(ended, 'failed'), ['test/b.test.ts: is ill']);
  });

  test('lists skipped tests and suites with their reasons', async () => {
    const source = `import { skippedFor } from './support/skipped.ts';\n${IMPORT}
      describe('git', () => {
        test('pushes', skippedFor('no git'), () => {});
        test('fetches', () => {});
        test('clones', (context) => context.skip('no disk'));
        test('merges', skippedFor(false), () => {});
      });
      describe('the log', skippedFor('needs STRATA_X'), () => { test('appends', () => {}); test('reads', () => {}); });`;
    const ended = await npmTest(project({ 'test/a.test.ts': source }));
    assert.deepEqual([ended.status, ended.lastLine], [0, '2 passed, 0 failed, 3 skipped'], ended.output);
    assert.deepEqual(listed(ended, 'skipped'), [
      'test/a.test.ts: git > pushes (no git)',
      'test/a.test.ts: git > clones (no disk)',
      'test/a.test.ts: the log (needs STRATA_X)',
    ]);
  });

  test('lists the figures that tests measured, of those that passed too', async () => {
    const source = `import { noteFigure } from './support/figures.ts';\n${IMPORT}
      test('measures', (context) => { noteFigure(context, 'p50 3 ms'); noteFigure(context, 'p99 9 ms'); });`;
    const ended = await npmTest(project({ 'test/a.test.ts': source }));
    assert.deepEqual([ended.status, ended.lastLine], [0, '1 passed, 0 failed, 0 skipped'], ended.output);
    assert.deepEqual(listed(ended, 'figures'), ['p50 3 ms', 'p99 9 ms']);
  });

  test('runs files of the product in few processes, and alone those that change or measure their process', async () => {
    const shows = `import { noteFigure } from '../support/figures.ts';\n${IMPORT}
      test('runs', (context) => noteFigure(context, 'process ' + process.pid));`;
    const alone = {
      'test/core/env.test.ts': `${shows}\nprocess.env['STRATA_X'] = 'y';`,
      'test/scenarios/a.test.ts': shows,
      'test/scenarios/b.test.ts': shows,
    };
    const processesOf = async (files: Readonly<Record<string, string>>): Promise<number> => {
      const ended = await npmTest(project(files), '--maxWorkers', '2');
      const count = Object.keys(files).length;
      assert.deepEqual([ended.status, ended.lastLine], [0, `${count} passed, 0 failed, 0 skipped`], ended.output);
      return new Set(listed(ended, 'figures').filter((line) => line !== '')).size;
    };
    const small = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`test/core/${at}.test.ts`, shows]));
    assert.ok((await processesOf(small)) <= 2);
    assert.equal(await processesOf(alone), 3);
  });

  test('names the files that ran before in a process that does not end', async () => {
    const lingers = `${IMPORT}test('a', () => { setInterval(() => {}, 1e3); });`;
    const files = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`test/core/${at}.test.ts`, lingers]));
    const ended = await npmTest(project(files), '--maxWorkers', '2');
    assert.deepEqual([ended.status, ended.lastLine], [1, '6 passed, 2 failed, 0 skipped'], ended.output);
    assert.match(
      listed(ended, 'failed').join(' '),
      /^test\/core\/\d\.test\.ts: did not end .* after test\/core\/\d\.test/,
    );
  });

  test('refuses one worker for several files, which would run in one process', async () => {
    const ended = await npmTest(project({ 'test/a.test.ts': PASSES, 'test/b.test.ts': PASSES }), '--maxWorkers', '1');
    assert.equal(ended.status, 1, ended.output);
    assert.match(ended.output, /use --maxWorkers 2/);
  });

  test('runs the files whose paths contain a word, and fails when none does', async () => {
    const root = project({ 'test/core/a.test.ts': PASSES, 'test/apps/b.test.ts': FAILS });
    const [one, none] = [await npmTest(root, 'core/a'), await npmTest(root, 'nothing')];
    assert.deepEqual([one.status, one.lastLine], [0, '1 passed, 0 failed, 0 skipped'], one.output);
    assert.deepEqual([none.status, none.lastLine], [1, '0 passed, 0 failed, 0 skipped'], none.output);
  });

  test('runs files that take minutes in the mode `long`, and no others', async () => {
    const root = project({ 'test/a.long.test.ts': PASSES, 'test/b.test.ts': FAILS });
    assert.equal((await npmTest(root, '--mode', 'long')).lastLine, '1 passed, 0 failed, 0 skipped');
    assert.equal((await npmTest(root)).lastLine, '0 passed, 1 failed, 0 skipped');
  });

  test('starts the cluster once, for files that import it, and stops it', async () => {
    const cluster = `import { appendFileSync } from 'node:fs';
export async function startTestCluster() {
  appendFileSync('cluster.log', 'start ');
  return { connectionString: 'postgres://here', stop: async () => appendFileSync('cluster.log', 'stop ') };
}\n`;
    const reaches = `import './support/pool.ts';
import { test } from 'vitest';
import assert from 'node:assert/strict';
test('has one', () => assert.equal(process.env.STRATA_TEST_POSTGRES, 'postgres://here'));\n`;
    const root = project({
      'test/support/postgres.ts': cluster,
      'test/support/pool.ts': `import type {} from './postgres.ts';\n`,
      'test/a.test.ts': reaches,
      'test/b.test.ts': reaches,
      'test/c.test.ts': PASSES,
    });
    assert.equal((await npmTest(root, 'c.test')).lastLine, '1 passed, 0 failed, 0 skipped');
    assert.equal(existsSync(join(root, 'cluster.log')), false);
    assert.equal((await npmTest(root)).lastLine, '3 passed, 0 failed, 0 skipped');
    assert.equal(readFileSync(join(root, 'cluster.log'), 'utf8'), 'start stop ');
  });

  for (const [what, wait] of [
    ['that wait', 'await new Promise((r) => setTimeout(r, 6e5));'],
    ['that never yield', 'for (;;);'],
  ]) {
    test(`stopped from outside, ends tests ${what} and what they started, and fails`, async () => {
      const endless = `${IMPORT}import { spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
test('goes on', async () => {
  const started = spawn('sleep', ['600'], { stdio: 'ignore' });
  writeFileSync('pids.new', process.pid + ' ' + started.pid);
  renameSync('pids.new', 'pids');
  ${wait}
});\n`;
      const root = project({ 'test/a.test.ts': endless });
      const running = startTests(root);
      const ended = new Promise((resolve) => running.once('exit', resolve));
      for (; !existsSync(join(root, 'pids')); await sleep(20)) assert.equal(running.exitCode, null);
      running.kill('SIGTERM');
      assert.notEqual(await ended, 0);
      for (const pid of readFileSync(join(root, 'pids'), 'utf8').split(' ')) await untilEnded(Number(pid));
    });
  }
});

/** Test files that misbehave, one case each, with the line that the closing report must print for it. */
const MISBEHAVING: readonly { readonly name: string; readonly source: string; readonly reported: RegExp }[] = [
  { name: 'has a failing test', source: FAILS, reported: /: is ill$/ },
  { name: 'cannot be read', source: 'const = 1;', reported: /: outside its tests$/ },
  { name: 'imports what is not there', source: `import './nothing.ts';`, reported: /: outside its tests$/ },
  { name: 'holds no test', source: 'export {};', reported: /: outside its tests$/ },
  {
    name: 'holds a suite without a test',
    source: `${IMPORT}describe('a', () => {});`,
    reported: /: a \(outside its tests\)$/,
  },
  {
    name: 'fails before the tests of a suite',
    source: `${IMPORT}import { beforeAll } from 'vitest';
      describe('a', () => { beforeAll(() => { throw new Error('x'); }); test('b', () => {}); });`,
    reported: /: a \(outside its tests\)$/,
  },
  {
    name: 'leaves in the middle',
    source: `${IMPORT}test('a', () => process.exit(0)); test('b', () => {});`,
    reported: /: a$/,
  },
  {
    name: 'ends its process in the middle',
    source: `${IMPORT}test('a', () => process.reallyExit(0)); test('b', () => {});`,
    reported: /: ended with exit code 0 before its tests did/,
  },
  {
    name: 'dies',
    source: `${IMPORT}test('a', () => process.kill(process.pid, 'SIGKILL'));`,
    reported: /: ended by SIGKILL before its tests did/,
  },
  {
    name: 'throws after its test ended',
    source: `${IMPORT}test('a', () => { setTimeout(() => { throw new Error('late'); }, 10); });
      test('b', () => new Promise((r) => setTimeout(r, 100)));`,
    reported: /: threw outside its tests: late$/,
  },
  {
    name: 'throws after all its tests ended',
    source: `${IMPORT}test('a', () => { setTimeout(() => { throw new Error('later'); }, 300); });`,
    reported: /: ended with exit code 1 after its tests$/,
  },
  {
    name: 'rejects after all its tests ended',
    source: `${IMPORT}test('a', () => { setTimeout(() => void Promise.reject(new Error('later')), 300); });`,
    reported: /: ended with exit code 1 after its tests$/,
  },
  {
    name: 'never stops looping',
    source: `${IMPORT}test('a', () => { for (;;); });`,
    reported: /: ended after 5 s without an end; not known to have ended: a$/,
  },
  {
    name: 'never stops looping after its tests',
    source: `${IMPORT}test('a', () => { setTimeout(() => { for (;;); }, 50); });`,
    // Whether the loop begins before vitest requests the end is a matter of timing.
    reported: /: (did not end by itself within 2 s after its tests|ended after 5 s without an end.*)$/,
  },
  {
    name: 'never stops looping at its end',
    source: `${IMPORT}process.on('exit', () => { for (;;); }); test('a', () => {});`,
    reported: /: did not end by itself within 2 s after its tests$/,
  },
  {
    name: 'waits without end',
    source: `${IMPORT}test('a', { timeout: 60_000 }, () => new Promise(() => setInterval(() => {}, 1e3)));`,
    reported: /: ended after 5 s without an end; not known to have ended: a$/,
  },
  {
    name: 'waits longer than a test may',
    source: `${IMPORT}test('a', () => new Promise(() => {}));`,
    reported: /: a$/,
  },
  {
    name: 'leaves a timer behind',
    source: `${IMPORT}test('a', () => { setInterval(() => {}, 1e3); });`,
    reported: /: did not end by itself within 2 s after its tests$/,
  },
];

const LEAVES_CHILD = `${IMPORT}import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
test('a', () => {
  const left = spawn('sleep', ['600'], { stdio: 'inherit' });
  left.unref();
  writeFileSync('left', String(left.pid));
});\n`;

describe('Test files that misbehave', () => {
  let root = '';
  let ended: Ended = { status: null, output: '', lastLine: '' };
  beforeAll(async () => {
    const files = MISBEHAVING.map(({ name, source }) => [`test/${name.replaceAll(' ', '-')}.test.ts`, source]);
    root = project({
      ...Object.fromEntries(files),
      'test/leaves-a-child.test.ts': LEAVES_CHILD,
      'test/passes.test.ts': PASSES,
    });
    ended = await npmTest(root);
  });

  for (const { name, reported } of MISBEHAVING) {
    test(`one that ${name} fails`, () => {
      const lines = listed(ended, 'failed').filter((line) =>
        line.startsWith(`test/${name.replaceAll(' ', '-')}.test.ts`),
      );
      assert.ok(
        lines.some((line) => reported.test(line)),
        `${reported} was not reported, but: ${lines.join('\n')}\n${ended.output}`,
      );
    });
  }

  test('one that leaves a child holding its output passes, and the child is named and ended', async () => {
    assert.deepEqual(listed(ended, 'left running by test files, and ended'), [
      'test/leaves-a-child.test.ts: sleep 600',
    ]);
    assert.ok(!listed(ended, 'failed').some((line) => line.startsWith('test/leaves-a-child.test.ts')));
    await untilEnded(Number(readFileSync(join(root, 'left'), 'utf8')));
  });

  test('the failures are counted, the run fails, and the count is its last line', () => {
    assert.equal(ended.status, 1);
    const { passed, failed } =
      /^(?<passed>\d+) passed, (?<failed>\d+) failed, 0 skipped$/.exec(ended.lastLine ?? '')?.groups ?? {};
    assert.ok(Number(passed) >= 2 && Number(failed) >= MISBEHAVING.length, ended.output);
  });

  test('the run leaves files only below .cache', () => {
    const { stdout } = spawnSync('git', ['status', '--short', '--ignored'], { cwd: root, encoding: 'utf8' });
    assert.deepEqual(
      stdout
        .split('\n')
        .filter((line) => line.startsWith('!!'))
        .sort(),
      ['!! .cache/', '!! node_modules'],
    );
  });
});
