/**
 * The four ways in which the work of a service grows: pushes of a repository, its refs, repositories of an account, and
 * nodes. Each prepares its lines, smallest first, on a service of its own.
 *
 * Invariants: a line differs from the others of its part in nothing but the size. Pushes of long histories are
 * written as real ones leave them, and an account's other repositories as events; everything else comes over HTTP.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type AccountId, uuid } from '../../../core/kernel/ids.ts';
import { type Account, createAccount } from '../../support/strata.ts';
import { createRawClient } from '../raw-client.ts';
import { pushRefs } from '../ref-pushes.ts';
import { createRepository, endServer, type Ground, openNode, openScene, type Scene, startServer } from '../scene.ts';
import { type SmallCommits, smallCommits } from '../small-commits.ts';
import { noCompactions, openSyntheticPushes } from '../synthetic-pushes.ts';
import type { ScaleLine } from './measure.ts';
import { writeRepositories } from './written-repositories.ts';

export interface ScaleSizes {
  readonly pushes: number;
  readonly refs: number;
  readonly repositories: number;
  readonly nodes: number;
}

export interface ScalePart {
  readonly name: string;
  readonly title: string;
  prepare(ground: Ground, sizes: ScaleSizes, say: (text: string) => void): Promise<readonly ScaleLine[]>;
}

/** The read models of a long history take their time. */
const CAUGHT_UP_SPAN = { waitMs: 15 * 60_000, windowMs: 2_000 };
const QUOTA_BYTES = 2 ** 50;

export const SCALE_PARTS: readonly ScalePart[] = [
  { name: 'pushes', title: 'Pushes of a repository', prepare: preparePushes },
  { name: 'refs', title: 'Refs of a repository', prepare: prepareRefs },
  { name: 'repositories', title: 'Repositories of an account with quotas', prepare: prepareRepositories },
  { name: 'nodes', title: 'Nodes of a service', prepare: prepareNodes },
];

/** 10, 1,000 and the most. */
function levels(most: number, below: readonly number[]): readonly number[] {
  return [...below.filter((count) => count < most), most];
}

async function preparePushes(
  ground: Ground,
  { pushes }: ScaleSizes,
  say: (text: string) => void,
): Promise<readonly ScaleLine[]> {
  const scene = await openScene(ground, 'pushes');
  await startServer(scene);
  const account = await createAccount(scene, 'bench');
  const counts = levels(pushes, [10, 1_000]);
  for (const count of counts) await createRepository(scene, account, `of-${count}-pushes`);
  await endServer(scene);
  const lines: ScaleLine[] = [];
  for (const count of counts) {
    say(`Making ${count} pushes`);
    const commits = watched(smallCommits(`pushes-${count}`));
    const at = { username: account.username, name: `of-${count}-pushes` };
    const synthetic = await openSyntheticPushes(scene, at, noCompactions());
    try {
      await synthetic.push(commits, count);
    } finally {
      await synthetic.close();
    }
    lines.push(lineOf(scene, account, count, at.name, commits));
  }
  say('Waiting for the read models');
  await settled(scene);
  await settled(scene);
  return lines;
}

async function prepareRefs(
  ground: Ground,
  { refs }: ScaleSizes,
  say: (text: string) => void,
): Promise<readonly ScaleLine[]> {
  const scene = await openScene(ground, 'refs');
  await startServer(scene);
  const account = await createAccount(scene, 'bench');
  const lines: ScaleLine[] = [];
  for (const count of levels(refs, [10, 1_000])) {
    say(`Pushing ${count} refs`);
    const name = `of-${count}-refs`;
    const commits = watched(smallCommits(name));
    await pushRefs(scene, account, { name, refs: count }, commits.next);
    lines.push(lineOf(scene, account, count, name, commits));
  }
  await settled(scene);
  return lines;
}

/** The plan has quotas that nobody reaches, so that usage is read as for any account with quotas. */
async function prepareRepositories(
  ground: Ground,
  { repositories }: ScaleSizes,
  say: (text: string) => void,
): Promise<readonly ScaleLine[]> {
  const plans = path.join(ground.folder, 'plans.json');
  const bytes = { storage_bytes: QUOTA_BYTES, transfer_bytes: QUOTA_BYTES, ingress_bytes: QUOTA_BYTES };
  await writeFile(plans, JSON.stringify({ PRO: { repos: null, ...bytes, byo_storage: true } }));
  const scene = await openScene(ground, 'repositories', { STRATA_PLANS: plans });
  const lines: ScaleLine[] = [];
  for (const count of levels(repositories, [1])) {
    say(`Making ${count} repositories`);
    await startServer(scene);
    const account = await createAccount(scene, `owner-of-${count}`, 'PRO');
    const commits = watched(smallCommits(`account-${count}`));
    await pushTo(scene, account, 'repository-0', commits);
    await endServer(scene);
    await writeRepositories(scene, uuid<AccountId>(account.id), count - 1);
    lines.push(lineOf(scene, account, count, 'repository-0', commits));
  }
  say('Waiting for the read models');
  await settled(scene);
  return lines;
}

async function pushTo(scene: Scene, account: Account, name: string, commits: SmallCommits): Promise<void> {
  await createRepository(scene, account, name);
  const client = createRawClient(scene.port, account);
  const { id, pack } = commits.next();
  await client.push(name, [{ name: 'refs/heads/main', before: null, after: id }], pack);
  client.close();
}

async function prepareNodes(
  ground: Ground,
  { nodes }: ScaleSizes,
  say: (text: string) => void,
): Promise<readonly ScaleLine[]> {
  say(`Starting one node, and ${nodes}`);
  const alone = await openScene(ground, 'one-node');
  const layers = path.join(ground.folder, 'layers');
  const settings = { STRATA_MASTER_KEY: 'ab'.repeat(32), STRATA_LAYERS_DIR: layers };
  // A worker holds up to 32.
  const connections = { max_connections: String(32 * nodes + 10) };
  const first = await openScene(ground, 'node-1', settings, connections);
  const together = [first];
  for (let number = 2; number <= nodes; number += 1) together.push(await openNode(first, `node-${number}`));
  for (const node of [alone, ...together]) await startServer(node);
  const lines: ScaleLine[] = [];
  for (const { label, service, asked } of [
    { label: 'one', service: [alone], asked: [alone] },
    { label: `${nodes}, one of them asked`, service: together, asked: [first] },
    { label: `${nodes}, asked in turn`, service: together, asked: together },
  ]) {
    const at = service[0] ?? first;
    const account = await createAccount(at, `asks-${asked.length}-of-${service.length}`);
    const commits = watched(smallCommits(label));
    await pushTo(at, account, 'repository', commits);
    lines.push({ ...lineOf(at, account, 0, 'repository', commits), label, asked, nodes: service });
  }
  for (const node of [alone, ...together]) await settled(node);
  return lines;
}

interface WatchedCommits extends SmallCommits {
  tip(): string;
}

/** Remembers the last commit that was made. */
function watched(commits: SmallCommits): WatchedCommits {
  let tip = '';
  const noted = <Commit extends { readonly id: string }>(commit: Commit): Commit => {
    tip = commit.id;
    return commit;
  };
  return { next: () => noted(commits.next()), instead: () => noted(commits.instead()), tip: () => tip };
}

function lineOf(
  scene: Scene,
  account: Account,
  count: number,
  repository: string,
  { next, tip }: WatchedCommits,
): ScaleLine {
  const label = count.toLocaleString('en-US');
  return { label, account, repository, tip: tip(), next, asked: [scene], nodes: [scene] };
}

/** Starts the server with an empty cache, and waits until it is idle. */
async function settled(scene: Scene): Promise<void> {
  const { group } = await startServer(scene);
  if (!(await group.settle(CAUGHT_UP_SPAN))) throw new Error(`The server of ${scene.name} did not become idle`);
}
