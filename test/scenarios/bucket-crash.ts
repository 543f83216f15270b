/**
 * Servers killed with SIGKILL between the steps of a push and of a compaction, with layers in the bucket of a user or
 * in a folder: what was acknowledged is whole, on a server that starts again and on every other one.
 *
 * Invariants: the server has reached the point at which it was to die, or the test fails.
 */
import assert from 'node:assert/strict';
import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RETENTION_MS_MIN } from '../../apps/server/settings.ts';
import { LAYERS_MAX } from '../../core/kernel/limits.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { LAYERS_AT_REST_MAX } from '../../core/repository/compaction.ts';
import type { LayersCompacted } from '../../core/repository/events.ts';
import { rebuildByScript } from '../support/bucket-script.ts';
import type { Ending } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRefs,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryAdmin,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode, type TestLog } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { BUCKET_ENV, createUserBucket } from '../support/user-bucket.ts';
import { startS3Server } from '../support/versitygw.ts';

export type PushPoint = Extract<FailpointName, `push-${string}`>;
export type CompactionPoint = Extract<FailpointName, `compaction-${string}`>;
export type DropPoint = Extract<FailpointName, `dropping-${string}`>;

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');

/** At these points the append is done: the push is committed although its client got no answer. */
const COMMITTED: ReadonlySet<PushPoint> = new Set(['push-appended', 'push-installed', 'push-answered'] as const);
/** Only a push too wide for one event is stored in parts; with long names few refs are enough. */
const WIDE_NAMES = Array.from({ length: 200 }, (_, n) => `refs/heads/${`${'long'.repeat(60)}/`.repeat(8)}${n}`);
const SPAN_MS = 60_000;
const NOTIFIED_MS = 3_000;
/** A manifest is a minute behind; the machine may be busy. */
const MANIFEST_SPAN_MS = 100_000;
const LIVES = { STRATA_FAILPOINT: '' };

export interface CrashService {
  /** The first is the one that dies. It is the only one that compacts. */
  readonly nodes: Strata[];
  readonly account: Account;
  /** Creates a repository, and returns its URL for git, with credentials. */
  create(strata: Pick<Strata, 'url'>, name: string): Promise<string>;
  /** The folder with the layers: of the bucket, the objects below its prefix. */
  readonly folder: string;
  readonly log: TestLog;
  readonly ending: Ending;
}

export async function startBucketService(ending: Ending, nodeCount: number): Promise<CrashService> {
  const [s3, shared] = [await startS3Server(ending), await sharedParts(ending)];
  const first = await startNode(ending, shared, BUCKET_ENV);
  const others = Array.from({ length: nodeCount - 1 }, () =>
    startNode(ending, shared, { ...BUCKET_ENV, STRATA_ROLES: 'git,api' }),
  );
  const nodes = [first, ...(await Promise.all(others))];
  const account = await createAccount(first, 'ada');
  const bucket = await createUserBucket(first, account, s3);
  return { nodes, account, create: bucket.create, folder: path.join(s3.folder, 'own'), log: shared.log, ending };
}

/** One server, whose layers are in a folder. */
export async function startFolderService(ending: Ending): Promise<CrashService> {
  const shared = await sharedParts(ending);
  const only = await startNode(ending, shared);
  const account = await createAccount(only, 'ada');
  const create: CrashService['create'] = (strata, name) => createRepository(strata, account, name);
  return { nodes: [only], account, create, folder: shared.layersDir, log: shared.log, ending };
}

/** Kills the first server at this point of a push. */
export async function killAtPush(service: CrashService, point: PushPoint): Promise<void> {
  const { nodes, create, ending } = service;
  const url = await create(firstOf(service), point);
  const work = await newWorkTree(ending);
  const acknowledged = (await git(work, ['rev-parse', 'HEAD'])).trim();
  await git(work, ['push', '--quiet', url, 'main']);

  nodes[0] = await firstOf(service).restart({ STRATA_FAILPOINT: point });
  const pushed = await commitFile(work, 'second', 'second\n');
  if (point === 'push-parts-appended') await createRefs(work, WIDE_NAMES, pushed);
  const answer = await tryGit(work, ['push', '--quiet', url, 'refs/heads/*']);
  if (point !== 'push-answered') assert.notEqual(answer.code, 0, 'the server was to die before it answered');
  await hasDied(firstOf(service));

  const expected = COMMITTED.has(point) ? pushed : acknowledged;
  const others = nodes.slice(1);
  for (const node of others) await isWhole(service, node, point, expected);
  nodes[0] = await firstOf(service).restart(LIVES);
  await isWhole(service, firstOf(service), point, expected);
  const again = gitUrl(others[0] ?? firstOf(service), service.account, point);
  await git(work, ['push', '--quiet', again, 'refs/heads/*']);
  for (const node of nodes) await isWhole(service, node, point, pushed);
  await isVerified(service, point);
}

/** Kills the first server at this point of a compaction, while clients push through all servers. */
export async function killAtCompaction(service: CrashService, point: CompactionPoint): Promise<void> {
  const { nodes, create, account, ending } = service;
  await create(firstOf(service), point);
  const work = await newWorkTree(ending);
  const push = (node: Strata) => tryGit(work, ['push', '--quiet', gitUrl(node, account, point), 'HEAD:main']);
  let acknowledged = '';
  for (let n = 0; n < LAYERS_MAX - 2; n += 1) {
    acknowledged = await commitFile(work, `file-${n % 5}`, `${n}\n`);
    const pushed = await push(nodes[n % nodes.length] ?? firstOf(service));
    assert.equal(pushed.code, 0, pushed.stderr);
  }
  nodes[0] = await firstOf(service).restart({ STRATA_FAILPOINT: point });
  const dying = firstOf(service);
  // The pushes hold the compaction's processes back for a while.
  const deadline = Date.now() + SPAN_MS;
  for (let n = 0; dying.process.signalCode === null; n += 1) {
    assert.ok(Date.now() < deadline, 'no compaction began');
    const commit = await commitFile(work, 'last', `${n}\n`);
    if ((await push(nodes[n % nodes.length] ?? dying)).code === 0) acknowledged = commit;
  }
  await hasDied(dying);
  for (const node of nodes.slice(1)) await holds(service, node, point, acknowledged);
  nodes[0] = await dying.restart(LIVES);
  for (const node of nodes) await holds(service, node, point, acknowledged);
  await untilCompacted(service, point);
  for (const node of nodes) await holds(service, node, point, acknowledged);
  await isVerified(service, point);
}

/**
 * Kills the first server at this point of a compaction that drops what a deleted branch had, when a retention of 0 days
 * is over.
 */
export async function killAtDrop(service: CrashService, point: DropPoint): Promise<void> {
  const { nodes, create, account, ending } = service;
  const clockFile = path.join(await tempDir(ending), 'ahead-ms');
  await writeFile(clockFile, '0');
  const clock = { NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile, STRATA_RETENTION_DAYS: '0' };
  nodes[0] = await firstOf(service).restart({ ...clock, STRATA_FAILPOINT: point });
  const dying = firstOf(service);
  const url = await create(dying, point);
  const work = await newWorkTree(ending);
  let acknowledged = '';
  // Enough for a row, by which the compaction is asked for.
  for (let n = 0; n <= LAYERS_AT_REST_MAX; n += 1) {
    acknowledged = await commitFile(work, `file-${n % 5}`, `${n}\n`);
    await git(work, ['push', '--quiet', url, 'HEAD:main']);
  }
  const gone = await commitFile(work, 'secret', 'secret\n');
  await git(work, ['push', '--quiet', url, 'HEAD:gone']);
  await git(work, ['push', '--quiet', url, ':gone']);

  // Webhooks are notified of the pushes by then; otherwise the drop waits a minute for that.
  await sleep(NOTIFIED_MS);
  await writeFile(clockFile, String(2 * RETENTION_MS_MIN));
  await hasDied(dying, 2 * SPAN_MS);
  nodes[0] = await dying.restart(LIVES);
  await holds(service, firstOf(service), point, acknowledged);
  await untilDropped(service, point);
  await isWhole(service, firstOf(service), point, acknowledged);
  const missing = await tryGit(await cloneOf(service, firstOf(service), point), ['cat-file', '-e', gone]);
  assert.notEqual(missing.code, 0);
  await git(work, ['push', '--quiet', gitUrl(firstOf(service), account, point), 'HEAD:main']);
  await isWhole(service, firstOf(service), point, gone);
  await isVerified(service, point);
}

/** Waits for the event after which the repository holds nothing that no ref reaches; it may be there already. */
async function untilDropped(service: CrashService, name: string): Promise<void> {
  await untilCompacted(service, name, ({ clean, added }) => clean && added.every(({ holds }) => holds === 'refs'));
}

/** Waits until the bucket alone is each repository as the service shows it, by the script of docs/bucket-layout.md. */
export async function isInBucketAlone(service: CrashService): Promise<void> {
  const { account, folder, ending } = service;
  const listed = await api(firstOf(service), account.token, 'GET', '/v1/repositories?limit=100');
  const { repositories } = listed.body as { readonly repositories: readonly { id: string; name: string }[] };
  assert.ok(repositories.length > 0);
  for (const { id, name } of repositories) {
    const refs = await refsOf(gitUrl(firstOf(service), account, name), ending);
    for (const deadline = Date.now() + MANIFEST_SPAN_MS; ; await sleep(1_000)) {
      const made = await refsByScript(path.join(folder, 'repositories', id), ending);
      if (made === refs) break;
      assert.ok(Date.now() < deadline, `the script makes of ${name}: ${made}\ninstead of: ${refs}`);
    }
  }
}

/** Returns what the script makes, or why it fails. */
async function refsByScript(objects: string, ending: Ending): Promise<string> {
  const copy = await tempDir(ending);
  const made = path.join(copy, 'made.git');
  try {
    await cp(objects, path.join(copy, 'store'), { recursive: true });
    await rebuildByScript(path.join(copy, 'store'), made);
  } catch (error) {
    return String(error);
  }
  await git(made, ['fsck', '--full', '--strict', '--no-dangling']);
  return refsOf(made, ending);
}

async function refsOf(repository: string, ending: Ending): Promise<string> {
  return git(await tempDir(ending), ['ls-remote', repository]);
}

function firstOf({ nodes }: CrashService): Strata {
  const [first] = nodes;
  assert.ok(first !== undefined);
  return first;
}

async function hasDied({ process }: Strata, spanMs = 10_000): Promise<void> {
  for (const deadline = Date.now() + spanMs; process.signalCode === null; await sleep(10)) {
    assert.ok(Date.now() < deadline, 'the server did not reach the point');
  }
  assert.equal(process.signalCode, 'SIGKILL');
}

async function cloneOf({ account, ending }: CrashService, node: Strata, name: string): Promise<string> {
  const copy = path.join(await tempDir(ending), 'copy.git');
  await git(path.dirname(copy), ['clone', '--quiet', '--mirror', gitUrl(node, account, name), copy]);
  await git(copy, ['fsck', '--full', '--strict']);
  return copy;
}

async function isWhole(service: CrashService, node: Strata, name: string, tip: string): Promise<void> {
  const copy = await cloneOf(service, node, name);
  assert.equal((await git(copy, ['rev-parse', 'refs/heads/main'])).trim(), tip);
  await leavesNothing(node);
}

/** What a compaction has just made is removed a moment after its event. */
async function leavesNothing(node: Strata): Promise<void> {
  for (const deadline = Date.now() + 10_000; ; await sleep(200)) {
    const left = await leftovers(node);
    if (left.length === 0) return;
    assert.ok(Date.now() < deadline, left.join('\n'));
  }
}

/** A push whose answer was cut off may be there too. */
async function holds(service: CrashService, node: Strata, name: string, acknowledged: string): Promise<void> {
  const copy = await cloneOf(service, node, name);
  await git(copy, ['merge-base', '--is-ancestor', acknowledged, 'refs/heads/main']);
}

/** Waits for the event of a compaction; it may be there already. */
async function untilCompacted(
  service: CrashService,
  name: string,
  isWanted: (compaction: LayersCompacted['data']) => boolean = () => true,
): Promise<void> {
  const { account, log } = service;
  const found = await api(firstOf(service), account.token, 'GET', `/v1/repos/${account.username}/${name}`);
  const stream = `repository-${(found.body as { readonly id: string }).id}`;
  for (const deadline = Date.now() + SPAN_MS; ; await sleep(500)) {
    const events = await log.since();
    const compactions = events.filter((event) => event.stream === stream && event.type === 'LayersCompacted');
    if (compactions.some(({ data }) => isWanted(data as LayersCompacted['data']))) return;
    assert.ok(Date.now() < deadline, 'no compaction followed');
  }
}

/** Every layer that an event names is in the bucket, with its bytes. */
async function isVerified(service: CrashService, name: string): Promise<void> {
  const repository = `${service.account.username}/${name}`;
  const { code, stdout } = await tryAdmin(firstOf(service), ['storage', 'verify', '--repository', repository]);
  assert.equal(code, 0, stdout);
}
