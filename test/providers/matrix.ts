/**
 * What the service does in a bucket of each provider, by real git, REST and a worker: verifies it, pushes, clones on a
 * node whose cache is empty, compacts, and removes what a deleted repository had.
 *
 * Invariants: each provider has a bucket, a proxy and a repository of its own. A cell tells what happened; whatever is
 * neither expected of a provider nor refused by it fails the cell, with the reason, and never the run.
 */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { createPostgresLayerCompactions } from '../../adapters/postgres/layer-compactions.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { type AccountId, type RepositoryId, timestamp, uuid } from '../../core/kernel/ids.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../core/kernel/limits.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { keepLog } from '../support/log.ts';
import { startS3Proxy } from '../support/s3-proxy.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { BUCKET_ENV, newUserBucket, type UserBucket } from '../support/user-bucket.ts';
import { type S3Server, startS3Server } from '../support/versitygw.ts';
import { type Cell, OPERATIONS, type ProviderRow } from './cells.ts';
import { type Play, play, type Seen } from './play.ts';
import type { Provider } from './rows.ts';

/** An account verifies two buckets at the same time. */
const PROVIDERS_AT_ONCE = 2;
const SPAN_MS = 60_000;
const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');
const OWN_NAMES = path.resolve(import.meta.dirname, 'own-names.ts');
const QUICK_INTERVALS = path.resolve(import.meta.dirname, '../support/quick-intervals.ts');

interface Ground {
  readonly ending: Ending;
  /** It knows addresses with the bucket's name in the path alone. */
  readonly s3: S3Server;
  readonly shared: SharedParts;
  readonly pool: pg.Pool;
  readonly first: Strata;
  /** Only requests fill its cache: no background work does. */
  readonly second: Strata;
  readonly account: Account;
  /** A work tree, and its commits in the order in which they are pushed. */
  readonly work: string;
  readonly commits: { readonly small: string; readonly large: string; readonly last: string };
}

/** What becomes of one provider. */
interface Trial {
  readonly provider: Provider;
  readonly s3: S3Server;
  readonly played: Play;
  /** Its repository, and its objects below the folder of the bucket. */
  readonly name: string;
  readonly prefix: string;
  readonly cells: Cell[];
  /** Null until its repository is made. */
  repository: string | null;
}

export async function tryProviders(ending: Ending, providers: readonly Provider[]): Promise<readonly ProviderRow[]> {
  const ground = await prepare(ending);
  const trials = await Promise.all(providers.map((provider, index) => newTrial(ground, provider, index + 1)));
  const waiting = [...trials];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await tryOne(ground, next);
  };
  await Promise.all(Array.from({ length: PROVIDERS_AT_ONCE }, work));
  await tryDeletions(ground, trials);
  return trials.map(({ provider, cells }) => ({ provider: provider.name, cells }));
}

async function prepare(ending: Ending): Promise<Ground> {
  const [s3, shared] = [await startS3Server(ending), await sharedParts(ending, 'postgres')];
  const env = { ...BUCKET_ENV, NODE_OPTIONS: `--import ${OWN_NAMES}` };
  const [first, second] = await Promise.all([
    startNode(ending, shared, env),
    startNode(ending, shared, { ...env, STRATA_ROLES: 'git,api' }),
  ]);
  const pool = createPool({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] ?? '', log: keepLog() });
  cleanUp(ending, () => pool.end());
  const work = await newWorkTree(ending);
  const small = (await git(work, ['rev-parse', 'HEAD'])).trim();
  // Text of this kind is a third longer than its bytes, and git's compression takes that away again.
  const large = await commitFile(work, 'large', randomBytes(9 * MIB).toString('base64'));
  const last = await commitFile(work, 'last', 'more\n');
  // Compressed once for all pushes.
  await git(work, ['repack', '-adq']);
  const account = await createAccount(first, 'ada');
  return { ending, s3, shared, pool, first, second, account, work, commits: { small, large, last } };
}

/** The server knows the bucket's name before one host, so that each provider with a host has a server of its own. */
async function newTrial(ground: Ground, provider: Provider, number: number): Promise<Trial> {
  const { host: virtualDomain } = provider;
  const s3 = virtualDomain === undefined ? ground.s3 : await startS3Server(ground.ending, { virtualDomain });
  const name = `provider-${number}`;
  return { provider, s3, played: play(provider, s3), name, prefix: `of-${name}`, cells: [], repository: null };
}

async function tryOne(ground: Ground, trial: Trial): Promise<void> {
  const { ending, first, account } = ground;
  const { s3 } = trial;
  const proxy = await startS3Proxy(ending, s3.port);
  proxy.fault = trial.played.fault;
  const url = new URL(proxy.url);
  url.hostname = trial.provider.host ?? url.hostname;
  const place = { name: trial.provider.name, prefix: trial.prefix, url: url.origin };
  const bucket = await newUserBucket(first, account, s3, place);
  const verified = await tried(ground, trial, () => verify(ground, bucket));
  if (verified.is === 'refused' || verified.is === 'failed') return;
  const remote = await bucket.create(first, trial.name);
  const { body } = await api(first, account.token, 'GET', `/v1/repos/${account.username}/${trial.name}`);
  const { id } = body as { readonly id: string };
  trial.repository = id;
  const { small, large, last } = ground.commits;
  await tried(ground, trial, (seen) => push(ground, remote, small, seen));
  await tried(ground, trial, (seen) => push(ground, remote, large, seen));
  await tried(ground, trial, () => clone(ground, trial.name, large));
  await tried(ground, trial, (seen) => compact(ground, id, remote, last, seen));
}

/** What the service did without; empty if nothing. */
type Without = readonly string[];

const CONDITIONS = 'conditional writes';
const CHECKS = 'checks of bodies';

/** Adds the cell of what is run. */
async function tried(
  { account }: Ground,
  { played, cells }: Trial,
  run: (seen: Seen) => Promise<Without>,
): Promise<Cell> {
  const seen = played.watch();
  let cell: Cell;
  try {
    const without = await run(seen);
    cell = seen.unknown.size === 0 ? { is: 'works', without } : { is: 'unknown', facts: [...seen.unknown] };
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).replaceAll(account.token, '<token>');
    cell = seen.refused === null ? { is: 'failed', why } : { is: 'refused', by: seen.refused };
  }
  cells.push(cell);
  return cell;
}

async function verify({ first, pool }: Ground, bucket: UserBucket): Promise<Without> {
  const { status, text } = await bucket.verify(first);
  if (status !== 200) throw new Error(text);
  const { rows } = await pool.query<{ readonly conditional_writes: boolean; readonly checks_bodies: boolean }>(
    'SELECT conditional_writes, checks_bodies FROM bucket_findings WHERE bucket_id = $1',
    [bucket.id],
  );
  const [found] = rows;
  if (found === undefined) throw new Error('The verification noted nothing');
  return [...(found.conditional_writes ? [] : [CONDITIONS]), ...(found.checks_bodies ? [] : [CHECKS])];
}

async function push({ work }: Ground, url: string, commit: string, seen: Seen): Promise<Without> {
  await git(work, ['push', '--quiet', url, `${commit}:refs/heads/main`]);
  return withoutIn(seen);
}

function withoutIn({ isUnconditional, isReadBack }: Seen): Without {
  return [...(isUnconditional ? [CONDITIONS] : []), ...(isReadBack ? [CHECKS] : [])];
}

async function clone({ ending, second, account }: Ground, name: string, tip: string): Promise<Without> {
  const folder = await tempDir(ending);
  await git(folder, ['clone', '--quiet', '--mirror', gitUrl(second, account, name), 'copy.git']);
  const cloned = (await git(path.join(folder, 'copy.git'), ['rev-parse', 'refs/heads/main'])).trim();
  if (cloned !== tip) throw new Error(`The clone is at ${cloned}, not at ${tip}`);
  return [];
}

/** Pushes a second small layer, and asks for the compaction that merges both, which nobody waits a minute for. */
async function compact(ground: Ground, id: string, url: string, last: string, seen: Seen): Promise<Without> {
  const { shared, pool, account } = ground;
  await push(ground, url, last, seen);
  const head = await shared.log.head();
  const wanted = { account: uuid<AccountId>(account.id), repository: uuid<RepositoryId>(id) };
  await createPostgresLayerCompactions(pool).want(wanted, timestamp(new Date().toISOString()));
  await until('the compaction', async () => {
    const events = await shared.log.since(head);
    return events.some(({ stream, type }) => stream === `repository-${id}` && type === 'LayersCompacted');
  });
  return withoutIn(seen);
}

/** Deletes the repositories and purges them, and waits until a worker has removed their layers an hour later. */
async function tryDeletions(ground: Ground, trials: readonly Trial[]): Promise<void> {
  const { ending, first, account } = ground;
  const made = trials.filter(({ repository }) => repository !== null);
  for (const { name, repository } of made) {
    await accepted(first, account, 'DELETE', `/v1/repos/${account.username}/${name}`);
    await accepted(first, account, 'POST', `/v1/repositories/${repository}/purge`, {});
  }
  const clockFile = path.join(await tempDir(ending), 'ahead-ms');
  await writeFile(clockFile, '0');
  await first.restart({
    NODE_OPTIONS: `--import ${OWN_NAMES} --import ${SET_CLOCK} --import ${QUICK_INTERVALS}`,
    TEST_CLOCK_FILE: clockFile,
  });
  const removals = made.map((trial) => tried(ground, trial, () => removed(trial)));
  await writeFile(clockFile, String(2 * REPLACED_LAYERS_KEPT_MS_MIN));
  await Promise.all(removals);
  for (const { cells } of trials) while (cells.length < OPERATIONS.length) cells.push({ is: 'no bucket' });
}

async function accepted(strata: Strata, account: Account, method: string, target: string, body?: object) {
  const { status, text } = await api(strata, account.token, method, target, body);
  if (status >= 300) throw new Error(`${method} ${target}: ${status} ${text}`);
}

async function removed({ s3, name, prefix, repository }: Trial): Promise<Without> {
  const folder = path.join(s3.folder, prefix, 'repositories', String(repository), 'layers');
  await until(`the layers of ${name} are removed`, async () => (await filesBelow(folder)).length === 0);
  return [];
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + SPAN_MS; !(await holds()); await sleep(200)) {
    if (Date.now() > deadline) throw new Error(`It did not happen within a minute: ${what}`);
  }
}
