/**
 * Servers killed with SIGKILL between the steps of a push and of a compaction, with layers in the bucket of a user: what
 * was acknowledged is whole, on a server that starts again and on every other one.
 *
 * Must stay true: the server has reached the point at which it was to die, or the test fails.
 */
import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LAYERS_MAX } from '../../core/kernel/limits.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { rebuildByScript } from '../support/bucket-script.ts';
import type { Ending } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRefs,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryAdmin,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode, type TestLog } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { BUCKET_ENV, createUserBucket, type UserBucket } from '../support/user-bucket.ts';
import { startS3Server } from '../support/versitygw.ts';

export type PushPoint = Extract<FailpointName, `push-${string}`>;
export type CompactionPoint = Extract<FailpointName, `compaction-${string}`>;

/** At these points the append is done: the push is committed although its client got no answer. */
const COMMITTED: ReadonlySet<PushPoint> = new Set(['push-appended', 'push-installed', 'push-answered'] as const);
/** Only a push too wide for one event is stored in parts; with long names few refs are enough. */
const WIDE_NAMES = Array.from({ length: 200 }, (_, n) => `refs/heads/${`${'long'.repeat(60)}/`.repeat(8)}${n}`);
const SPAN_MS = 60_000;
/** A manifest is a minute behind; the machine may be busy. */
const MANIFEST_SPAN_MS = 100_000;
const LIVES = { STRATA_FAILPOINT: '' };

export interface BucketService {
  /** The first is the one that dies. It is the only one that compacts. */
  readonly nodes: Strata[];
  readonly account: Account;
  readonly bucket: UserBucket;
  /** The folder with the objects of the bucket, below its prefix. */
  readonly folder: string;
  readonly log: TestLog;
  readonly ending: Ending;
}

export async function startBucketService(ending: Ending, nodeCount: number): Promise<BucketService> {
  const [s3, shared] = [await startS3Server(ending), await sharedParts(ending)];
  const first = await startNode(ending, shared, BUCKET_ENV);
  const others = Array.from({ length: nodeCount - 1 }, () =>
    startNode(ending, shared, { ...BUCKET_ENV, STRATA_ROLES: 'git,api' }),
  );
  const nodes = [first, ...(await Promise.all(others))];
  const account = await createAccount(first, 'ada');
  const bucket = await createUserBucket(first, account, s3);
  return { nodes, account, bucket, folder: path.join(s3.folder, 'own'), log: shared.log, ending };
}

/** Kills the first server at this point of a push. */
export async function killAtPush(service: BucketService, point: PushPoint): Promise<void> {
  const { nodes, bucket, ending } = service;
  const url = await bucket.create(firstOf(service), point);
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
export async function killAtCompaction(service: BucketService, point: CompactionPoint): Promise<void> {
  const { nodes, bucket, account, ending } = service;
  await bucket.create(firstOf(service), point);
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
  for (let n = 0; dying.process.signalCode === null; n += 1) {
    assert.ok(n < 2 * LAYERS_MAX, 'no compaction began');
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

/** Waits until the bucket alone is each repository as the service shows it, by the script of docs/bucket-layout.md. */
export async function isInBucketAlone(service: BucketService): Promise<void> {
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

function firstOf({ nodes }: BucketService): Strata {
  const [first] = nodes;
  assert.ok(first !== undefined);
  return first;
}

async function hasDied({ process }: Strata): Promise<void> {
  for (const deadline = Date.now() + 10_000; process.signalCode === null; await sleep(10)) {
    assert.ok(Date.now() < deadline, 'the server did not reach the point');
  }
  assert.equal(process.signalCode, 'SIGKILL');
}

async function cloneOf({ account, ending }: BucketService, node: Strata, name: string): Promise<string> {
  const copy = path.join(await tempDir(ending), 'copy.git');
  await git(path.dirname(copy), ['clone', '--quiet', '--mirror', gitUrl(node, account, name), copy]);
  await git(copy, ['fsck', '--full', '--strict']);
  return copy;
}

async function isWhole(service: BucketService, node: Strata, name: string, tip: string): Promise<void> {
  const copy = await cloneOf(service, node, name);
  assert.equal((await git(copy, ['rev-parse', 'refs/heads/main'])).trim(), tip);
  assert.deepEqual(await leftovers(node), []);
}

/** A push whose answer was cut off may be there too. */
async function holds(service: BucketService, node: Strata, name: string, acknowledged: string): Promise<void> {
  const copy = await cloneOf(service, node, name);
  await git(copy, ['merge-base', '--is-ancestor', acknowledged, 'refs/heads/main']);
}

/** Waits for the event of a compaction; it may be there already. */
async function untilCompacted(service: BucketService, name: string): Promise<void> {
  const { account, log } = service;
  const found = await api(firstOf(service), account.token, 'GET', `/v1/repos/${account.username}/${name}`);
  const stream = `repository-${(found.body as { readonly id: string }).id}`;
  for (const deadline = Date.now() + SPAN_MS; ; await sleep(500)) {
    const events = await log.since();
    if (events.some((event) => event.stream === stream && event.type === 'LayersCompacted')) return;
    assert.ok(Date.now() < deadline, 'no compaction followed');
  }
}

/** Every layer that an event names is in the bucket, with its bytes. */
async function isVerified(service: BucketService, name: string): Promise<void> {
  const repository = `${service.account.username}/${name}`;
  const { code, stdout } = await tryAdmin(firstOf(service), ['storage', 'verify', '--repository', repository]);
  assert.equal(code, 0, stdout);
}
