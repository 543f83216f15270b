/**
 * A disk that fills up at each place where a push or a fetch writes: the server refuses with a message, leaves nothing
 * incomplete, and works again as soon as there is space.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
import { until } from '../support/read-models.ts';
import { skippedFor } from '../support/skipped.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const MIB = 1024 * 1024;
const NO_ROOM = /remote: the server has no room left on its disk: nothing was changed, try again later/;

const tried = mountSmallDisk(MIB);
const skip = 'skip' in tried ? tried.skip : false;
if (!('skip' in tried)) tried.remove();

function newDisk(ending: Ending, sizeBytes: number): string {
  const disk = mountSmallDisk(sizeBytes);
  if ('skip' in disk) throw new Error(disk.skip);
  cleanUp(ending, () => disk.remove());
  return disk.path;
}

interface Scene {
  readonly strata: Strata;
  readonly ada: Account;
  readonly url: string;
  readonly work: string;
  readonly events: () => Promise<number>;
}

/** Starts a server on these folders, with a small repository. */
async function start(
  context: Ending,
  folders: { readonly dataDir: string; readonly layersDir: string },
): Promise<Scene> {
  const shared = await sharedParts(context);
  const env = { ...shared.env, STRATA_LAYERS_DIR: folders.layersDir };
  const strata = await startStrata(context, { dataDir: folders.dataDir, env });
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  return { strata, ada, url, work, events: async () => (await shared.log.since()).length };
}

/** Commits this many random bytes, which do not compress. */
async function commitBytes(work: string, sizeBytes: number): Promise<string> {
  const content = randomBytes(sizeBytes);
  const blob = (await git(work, ['hash-object', '-w', '--stdin'], content)).trim();
  await git(work, ['update-index', '--add', '--cacheinfo', `100644,${blob},large`]);
  await git(work, ['commit', '--quiet', '-m', 'Large']);
  return (await git(work, ['rev-parse', 'HEAD'])).trim();
}

/** Fills the remaining space. */
async function fill(file: string): Promise<void> {
  await assert.rejects(writeFile(file, randomBytes(32 * MIB)), /ENOSPC/);
}

async function isRefused({ strata, ada, url, work, events }: Scene): Promise<void> {
  const before = { refs: await git(work, ['ls-remote', url]), events: await events() };
  const pushed = await tryGit(work, ['push', url, 'main']);
  assert.notEqual(pushed.code, 0);
  assert.match(pushed.stderr, NO_ROOM);
  assert.deepEqual({ refs: await git(work, ['ls-remote', url]), events: await events() }, before);
  assert.deepEqual(await leftovers(strata), []);
  const branches = await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches');
  assert.equal(branches.status, 200, branches.text);
  await isShownAsOutage(strata);
}

/** The answer to git has status 200, so the metrics and the log say that the push failed because of the service. */
async function isShownAsOutage(strata: Strata): Promise<void> {
  const metrics = await (await fetch(`${strata.url}/metrics`)).text();
  assert.match(
    metrics,
    /^strata_git_request_seconds_count\{operation="push",status="200",outcome="outage",class="(disk-full|layer-store-full)"\} [1-9]/m,
  );
  const lines = strata
    .log()
    .split('\n')
    .filter((line) => line.includes('"operation":"push"') && line.includes('"msg":"git"'));
  const outages = lines.filter((line) => line.includes('"outcome":"outage"'));
  assert.notEqual(outages.length, 0, lines.join('\n'));
  for (const line of outages) assert.match(line, /^\{"level":"warn"/);
}

async function isAccepted(context: Ending, { url, work }: Scene): Promise<void> {
  await git(work, ['push', '--quiet', '--force', url, 'main']);
  const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
  assert.equal(await git(work, ['ls-remote', url, 'refs/heads/main']), `${head}\trefs/heads/main\n`);
  const clones = await tempDir(context);
  await git(clones, ['clone', '--quiet', '--mirror', url, 'back.git']);
  await git(path.join(clones, 'back.git'), ['fsck', '--full']);
}

/** Reads go on, so the node stays ready. */
async function isShownWithoutRoom({ url }: Strata): Promise<void> {
  const free = (metrics: string, folder: string): number =>
    Number(new RegExp(`^strata_disk_free_bytes\\{folder="${folder}"\\} (\\d+)$`, 'm').exec(metrics)?.[1]);
  await until(async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return ['data', 'layers'].every((folder) => free(metrics, folder) < MIB);
  });
  const ready = await fetch(`${url}/readyz`);
  assert.equal(ready.status, 200);
  const { parts } = (await ready.json()) as { readonly parts: Readonly<Record<string, string>> };
  assert.deepEqual([parts['disk'], parts['layers']], ['degraded', 'degraded']);
}

describe('On a full disk', skippedFor(skip), () => {
  test('a pack that does not fit in quarantine is refused, and a smaller one is accepted', async (context) => {
    const disk = newDisk(context, 24 * MIB);
    const scene = await start(context, { dataDir: disk, layersDir: path.join(disk, 'layers') });
    await commitBytes(scene.work, 40 * MIB);
    await isRefused(scene);
    await git(scene.work, ['reset', '--quiet', '--hard', 'HEAD~1']);
    await commitBytes(scene.work, 2 * MIB);
    await isAccepted(context, scene);
  });

  test('a layer that does not fit is not stored in part, and the push is refused', async (context) => {
    const disk = newDisk(context, 8 * MIB);
    const scene = await start(context, { dataDir: await tempDir(context), layersDir: path.join(disk, 'layers') });
    await commitBytes(scene.work, 12 * MIB);
    await isRefused(scene);
    await git(scene.work, ['reset', '--quiet', '--hard', 'HEAD~1']);
    await commitBytes(scene.work, 2 * MIB);
    await isAccepted(context, scene);
  });

  test('without a free byte pushes are refused and reads continue, until there is space', async (context) => {
    const disk = newDisk(context, 16 * MIB);
    const scene = await start(context, { dataDir: disk, layersDir: path.join(disk, 'layers') });
    const filler = path.join(disk, 'filler');
    await fill(filler);
    await commitFile(scene.work, 'small', 'small\n');
    await isRefused(scene);
    await isShownWithoutRoom(scene.strata);
    // The server answers refs from memory; for objects git needs a folder, and the clone fails if it cannot be made.
    const cloned = await tryGit(await tempDir(context), ['clone', scene.url, 'none']);
    if (cloned.code !== 0) assert.match(cloned.stderr, /503/);
    await rm(filler);
    await isAccepted(context, scene);
  });

  test('a cache that does not fit serves nothing rather than a part, until there is space', async (context) => {
    const disk = newDisk(context, 16 * MIB);
    const scene = await start(context, { dataDir: disk, layersDir: path.join(await tempDir(context), 'layers') });
    await commitBytes(scene.work, 4 * MIB);
    await isAccepted(context, scene);
    await rm(path.join(disk, 'cache'), { recursive: true, force: true });
    const filler = path.join(disk, 'filler');
    await fill(filler);
    const clones = await tempDir(context);
    const cloned = await tryGit(clones, ['clone', scene.url, 'none']);
    assert.notEqual(cloned.code, 0);
    assert.match(cloned.stderr, /503/);
    await rm(filler);
    await isAccepted(context, scene);
  });
});
