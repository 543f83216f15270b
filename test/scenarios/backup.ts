/**
 * A service under load that is saved by deploy/backup.sh, lost, and restored by deploy/restore.sh.
 *
 * Between the two steps of the backup a checkpoint is signed, an account is erased, a repository is purged, and a sweep
 * removes its layers. Then the mirror of every repository is compared with those of before.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'vitest';
import { filesBelow } from '../support/files-below.ts';
import { eventually } from '../support/processes.ts';
import { createDice, type Dice } from '../support/seeded.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  type Finished,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');
const TWO_HOURS_MS = 2 * 60 * 60_000;

/** Where the service keeps its state, and how a test loses it. */
export interface BackedUpService {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Removes the database, and returns settings that name a new one. */
  loseDatabase(): Promise<Readonly<Record<string, string>>>;
  /** Removes every object of the layers' store. */
  loseLayers(): Promise<void>;
}

/** Starts a script of deploy/ as an operator does. */
function startScript(
  name: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[],
): { readonly pid: number; readonly finished: Promise<Finished> } {
  // The launcher replaces itself by the Node that the tests run under, so that the process keeps its id.
  const searched = `${path.dirname(process.execPath)}${path.delimiter}${env['PATH'] ?? ''}`;
  const child = spawn(path.join(ROOT, 'deploy', name), args, {
    cwd: ROOT,
    env: { ...env, PATH: searched },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const finished = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return { pid: child.pid ?? 0, finished };
}

export async function script(name: string, env: Readonly<Record<string, string>>, args: readonly string[]) {
  return startScript(name, env, args).finished;
}

/** The refs of a mirror, which git has checked. */
async function mirrorOf(context: TestContext, strata: Strata, account: Account, name: string): Promise<string> {
  const folder = await tempDir(context);
  await git(folder, ['clone', '--quiet', '--mirror', gitUrl(strata, account, name), 'mirror']);
  const mirror = path.join(folder, 'mirror');
  await git(mirror, ['fsck', '--full', '--strict']);
  return git(mirror, ['for-each-ref', '--format=%(refname) %(objectname)']);
}

/** Pushes to a repository until it is told to end. */
interface Load {
  /** The commits that were acknowledged, in their order. */
  readonly acknowledged: string[];
  end(): Promise<void>;
}

async function startLoad(context: TestContext, url: string, dice: Dice): Promise<Load> {
  const work = await newWorkTree(context);
  const acknowledged: string[] = [];
  let isOver = false;
  const run = async (): Promise<void> => {
    while (!isOver) {
      const commit = await commitFile(
        work,
        `file-${dice.below(5)}`,
        `${acknowledged.length} ${dice.below(1_000_000)}\n`,
      );
      await git(work, ['push', '--quiet', url, 'main']);
      acknowledged.push(commit);
    }
  };
  const running = run();
  running.catch(() => undefined);
  return {
    acknowledged,
    async end() {
      isOver = true;
      await running;
    },
  };
}

interface Made {
  readonly ada: Account;
  readonly bob: Account;
  readonly purgedId: string;
}

/** Makes a repository that nothing changes, one that will be purged, and one of an account that will be erased. */
async function fill(context: TestContext, strata: Strata): Promise<Made> {
  const ada = await createAccount(strata, 'ada');
  const bob = await createAccount(strata, 'bob');
  const work = await newWorkTree(context);
  const quiet = await createRepository(strata, ada, 'quiet');
  await git(work, ['tag', '-a', 'v1', '-m', 'one']);
  await git(work, ['push', '--quiet', quiet, 'main', 'v1', 'main:refs/heads/other']);
  await git(work, ['push', '--quiet', await createRepository(strata, bob, 'erased'), 'main']);
  const purged = await createRepository(strata, ada, 'purged');
  await git(work, ['push', '--quiet', purged, 'main']);
  await git(work, ['checkout', '--quiet', '-b', 'secret']);
  await commitFile(work, 'secret', 'a password\n');
  await git(work, ['push', '--quiet', purged, 'secret']);
  const { body } = await api(strata, ada.token, 'GET', '/v1/repos/ada/purged');
  return { ada, bob, purgedId: (body as { readonly id: string }).id };
}

/** What happens on a living service between the database's copy and that of the layers. */
async function changeBetween(context: TestContext, strata: Strata, { ada, purgedId }: Made): Promise<void> {
  const signed = await api(strata, ada.token, 'GET', '/v1/account/checkpoints/latest');
  assert.equal(signed.status, 200, signed.text);
  await admin(strata, ['account', 'erase', '--username', 'bob', '--yes']);
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', gitUrl(strata, ada, 'purged'), ':secret']);
  const purged = await api(strata, ada.token, 'POST', `/v1/repositories/${purgedId}/purge`, {});
  assert.equal(purged.status, 202, purged.text);
  const clockFile = path.join(await tempDir(context), 'ahead-ms');
  await writeFile(clockFile, String(TWO_HOURS_MS));
  const clock = { NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile };
  const { removed } = (await admin({ env: { ...strata.env, ...clock } }, ['storage', 'expire'])) as { removed: number };
  assert.ok(removed > 0, 'the sweep removes what the purge let go');
}

async function isStopped(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8');
  return status.slice(status.lastIndexOf(')') + 2).startsWith('T');
}

async function saveUnderLoad(context: TestContext, strata: Strata, made: Made, folder: string): Promise<void> {
  const env = { ...strata.env, STRATA_FAILPOINT: 'backup-database-saved:stop' };
  const { pid, finished } = startScript('backup.sh', env, [folder]);
  const early = finished.then(({ code, stdout, stderr }) => {
    throw new Error(`The backup ended early with ${code}:\n${stdout}${stderr}`);
  });
  early.catch(() => undefined);
  await Promise.race([eventually('the database is saved', () => isStopped(pid)), early]);
  await changeBetween(context, strata, made);
  process.kill(pid, 'SIGCONT');
  const { code, stdout, stderr } = await finished;
  assert.equal(code, 0, `${stdout}${stderr}`);
  assert.match(stdout, /is whole\. It does not hold the master key \(.+\)/);
}

async function refuteMasterKey(folder: string, key: string): Promise<void> {
  const bytes = Buffer.from(key, 'hex');
  for (const file of await filesBelow(folder)) {
    const content = await readFile(path.join(folder, file));
    assert.ok(!content.includes(bytes) && !content.includes(key), `${file} holds the master key`);
  }
}

/** Saves, loses and restores the service once. */
export async function backUpAndRestore(context: TestContext, service: BackedUpService, seed: number): Promise<void> {
  await context.annotate(`seed ${seed}`);
  const dice = createDice(seed);
  // Before the load, which draws as often as it gets to.
  const [losesLayers, pushesBefore] = [dice.chance(0.5), dice.below(10)];
  const strata = await startStrata(context, { log: 'postgres', ...service });
  const made = await fill(context, strata);
  const { ada, bob } = made;
  const busy = await startLoad(context, await createRepository(strata, ada, 'busy'), dice);
  const mirrors = new Map<string, string>();
  for (const name of ['quiet', 'purged']) mirrors.set(name, await mirrorOf(context, strata, ada, name));
  await eventually('the load has begun', () => busy.acknowledged.length > pushesBefore);

  const known = busy.acknowledged.length;
  const folder = path.join(await tempDir(context), 'backup');
  await saveUnderLoad(context, strata, made, folder);
  await busy.end();
  const keyFile = path.join(service.dataDir, 'master-key');
  const key = strata.env['STRATA_MASTER_KEY'] ?? (await readFile(keyFile, 'utf8')).trim();
  await refuteMasterKey(folder, key);

  await strata.kill();
  const place = await service.loseDatabase();
  const env = { ...strata.env, ...place };
  if (losesLayers) await service.loseLayers();
  await refuseWithoutMasterKey(env, keyFile, folder);
  const restored = await script('restore.sh', env, [folder]);
  assert.equal(restored.code, 0, `${restored.stdout}${restored.stderr}`);

  const again = await strata.restart(place);
  for (const [name, refs] of mirrors) assert.equal(await mirrorOf(context, again, ada, name), refs, name);
  const [tip = ''] = /[0-9a-f]{40}/.exec(await mirrorOf(context, again, ada, 'busy')) ?? [];
  assert.ok(busy.acknowledged.indexOf(tip) >= known - 1, `${tip} is an acknowledged push of the time of the backup`);
  const erased = await tryGit(folder, ['ls-remote', gitUrl(again, bob, 'erased')]);
  assert.match(erased.stderr, /Authentication failed|401/, 'the account is erased again');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', '--force', gitUrl(again, ada, 'busy'), 'main']);
}

async function refuseWithoutMasterKey(
  env: Readonly<Record<string, string>>,
  keyFile: string,
  folder: string,
): Promise<void> {
  const other = await script('restore.sh', { ...env, STRATA_MASTER_KEY: 'ef'.repeat(32) }, [folder]);
  assert.equal(other.code, 1, other.stdout);
  assert.match(other.stderr, /is not the master key that the service had .* Nothing was changed/);
  if (env['STRATA_MASTER_KEY'] !== undefined) return;
  await rename(keyFile, `${keyFile}.away`);
  const missing = await script('restore.sh', env, [folder]);
  assert.equal(missing.code, 1, missing.stdout);
  assert.match(missing.stderr, /The master key is missing: .* Nothing was changed/);
  await rename(`${keyFile}.away`, keyFile);
}

/** A service with the embedded database, and its layers in a folder. */
export function embeddedService(dataDir: string): BackedUpService {
  return {
    dataDir,
    env: {},
    async loseDatabase() {
      await rm(path.join(dataDir, 'postgres'), { recursive: true });
      return {};
    },
    loseLayers: () => rm(path.join(dataDir, 'layers'), { recursive: true }),
  };
}
