/**
 * The launcher as the server's supervisor, with small programs in the server's place: each writes a line for each
 * start.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type TestContext, test } from 'vitest';
import { cleanUp } from '../../support/cleanup.ts';
import { eventually, isAlive } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

const SUPERVISE = pathToFileURL(path.join(import.meta.dirname, '../../../apps/launcher/supervise.mjs')).href;
const PATIENCE = { firstPauseMs: 10, lastPauseMs: 40, steadyMs: 60_000, failedStartsMax: 3 };

interface Supervised {
  readonly launcher: ChildProcess;
  /** The process ids of the starts so far. */
  starts(): Promise<readonly number[]>;
  ended(): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly stderr: string }>;
}

/** `program` runs at each start, with the number of starts so far as `start`. */
async function supervised(context: TestContext, program: string, patience = PATIENCE): Promise<Supervised> {
  const folder = await tempDir(context);
  const starts = path.join(folder, 'starts');
  await writeFile(starts, '');
  const server = path.join(folder, 'server.mjs');
  const noting = `
    import { appendFileSync, readFileSync } from 'node:fs';
    appendFileSync(${JSON.stringify(starts)}, process.pid + '\\n');
    const start = readFileSync(${JSON.stringify(starts)}, 'utf8').trim().split('\\n').length;`;
  await writeFile(server, `${noting}\n${program}\n`);
  const call = `supervise(process.execPath, [${JSON.stringify(server)}], process.env, ${JSON.stringify(patience)})`;
  const code = `import { supervise } from ${JSON.stringify(SUPERVISE)}; ${call};`;
  const launcher = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  launcher.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const end = new Promise<Awaited<ReturnType<Supervised['ended']>>>((resolve) => {
    launcher.on('close', (exitCode, signal) => resolve({ code: exitCode, signal, stderr }));
  });
  const readStarts = async () => (await readFile(starts, 'utf8')).split('\n').flatMap((line) => Number(line) || []);
  cleanUp(context, async () => {
    launcher.kill('SIGKILL');
    await end;
    await eventually('no server is left', async () => !(await readStarts()).some(isAlive));
  });
  return { launcher, ended: () => end, starts: readStarts };
}

const READY = "process.send('ready'); process.on('disconnect', () => process.exit()); setInterval(() => {}, 1000);";

test('A server that was ready is started again, whatever ended it, until it ends by itself', async (context) => {
  const ends = `
    process.send('ready', () => {
      if (start === 1) process.exit(1);
      if (start === 2) process.kill(process.pid, 'SIGKILL');
      if (start === 3) process.exit(0);
    });`;
  const { starts, ended } = await supervised(context, ends);
  const { code, stderr } = await ended();
  assert.deepEqual([code, (await starts()).length], [0, 3], stderr);
  assert.match(stderr, /ended with exit code 1: it is started again in 0\.01 s\n.*ended with SIGKILL.* in 0\.02 s/);
});

test('A first start that fails is not repeated, and its exit code is that of the launcher', async (context) => {
  const { starts, ended } = await supervised(context, 'process.exit(7);');
  const { code, stderr } = await ended();
  assert.deepEqual([code, stderr, (await starts()).length], [7, '', 1]);
});

test('A server that does not become ready any more is given up', async (context) => {
  const fails = "if (start > 1) process.exit(5); process.send('ready', () => process.exit(1));";
  const { starts, ended } = await supervised(context, fails);
  const { code, stderr } = await ended();
  assert.deepEqual([code, (await starts()).length], [5, 1 + PATIENCE.failedStartsMax], stderr);
  assert.match(stderr, /did not become ready 3 times: given up/);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} reaches the server, and its end is that of the launcher`, async (context) => {
    const stops = `process.on('${signal}', () => process.exit(3)); ${READY}`;
    const { launcher, starts, ended } = await supervised(context, stops);
    await eventually('it runs', async () => (await starts()).length === 1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    launcher.kill(signal);
    const { code, stderr } = await ended();
    assert.deepEqual([code, stderr, (await starts()).length], [3, '', 1]);
  });
}

test('A signal between two starts ends the launcher', async (context) => {
  const fails = "process.send('ready', () => process.exit(1));";
  const { launcher, starts, ended } = await supervised(context, fails, { ...PATIENCE, firstPauseMs: 60_000 });
  let said = '';
  launcher.stderr?.on('data', (text: string) => (said += text));
  await eventually('it waits', () => said.includes('started again in 60 s'));
  launcher.kill('SIGTERM');
  assert.equal((await ended()).signal, 'SIGTERM');
  assert.equal((await starts()).length, 1);
});

test('SIGHUP reaches a server that goes on after it', async (context) => {
  const renews = `process.on('SIGHUP', () => process.send('ready')); ${READY}`;
  const { launcher, starts, ended } = await supervised(context, renews);
  await eventually('it runs', async () => (await starts()).length === 1);
  await new Promise((resolve) => setTimeout(resolve, 100));
  launcher.kill('SIGHUP');
  await new Promise((resolve) => setTimeout(resolve, 100));
  const [pid = 0] = await starts();
  process.kill(pid, 'SIGKILL');
  await eventually('it is started again', async () => (await starts()).length === 2);
  launcher.kill('SIGTERM');
  assert.equal((await ended()).signal, 'SIGTERM');
});

test('A launcher that is killed leaves no server', async (context) => {
  const { launcher, starts } = await supervised(context, READY);
  await eventually('it runs', async () => (await starts()).length === 1);
  launcher.kill('SIGKILL');
  const [pid = 0] = await starts();
  await eventually('the server is gone', () => !isAlive(pid));
});
