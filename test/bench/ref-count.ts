/**
 * Measures what a repository of many refs costs, beside one of a single ref on the same server: listings, pushes, and
 * how long both keep everybody else waiting.
 *
 * Invariants: the refs come by real pushes over HTTP. Each figure of a push is of one that moves one ref.
 */
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { canonicalJson } from '../../core/kernel/json.ts';
import { repositories } from '../../core/repository/evolve.ts';
import { type Account, createAccount } from '../support/strata.ts';
import { describeMachine, describeVersions } from './environment.ts';
import { createRawClient, pushChain, type RawClient } from './raw-client.ts';
import { pushRefs } from './ref-pushes.ts';
import { endServer, onGround, openScene, type Scene, startServer, type WatchedServer } from './scene.ts';
import { type SmallCommit, smallCommits } from './small-commits.ts';
import { percentile } from './statistics.ts';
import { noCompactions, openSyntheticPushes } from './synthetic-pushes.ts';
import { formatFigure, renderTable } from './table.ts';

const LISTINGS = 20;
/** Fewer than lead to a compaction immediately, whose work would be measured too. */
const PUSHES = 30;
const SNAPSHOT_SAVED_MS = 3_000;
const SETTLE_SPAN = { waitMs: 120_000, windowMs: 500 };

export interface RefCountLine {
  readonly refs: number;
  readonly entityBytes: number;
  readonly snapshotBytes: number;
  /** By a server that has just started, and by the same one again. */
  readonly firstListingMs: number;
  readonly listingP50Ms: number;
  /** The first one after each push. */
  readonly listingAfterPushP50Ms: number;
  readonly pushP50Ms: number;
  readonly pushP99Ms: number;
  /** Processor time of one turn of the event loop during pushes, and during the listings after them. */
  readonly pushTurnMs: number;
  readonly listingTurnMs: number;
  /** A listing of another repository, while pushes and listings go on. */
  readonly othersP50Ms: number;
  readonly othersP99Ms: number;
}

export interface RefCountBench {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  readonly load: number;
  readonly lines: readonly RefCountLine[];
}

interface Options {
  readonly refs: number;
  readonly say: (text: string) => void;
}

export async function benchRefCount({ refs, say }: Options): Promise<RefCountBench> {
  const load = os.loadavg()[0] ?? 0;
  return onGround(async (ground) => {
    const scene = await openScene(ground, 'refs');
    await startServer(scene);
    const account = await createAccount(scene, 'bench');
    const lines: RefCountLine[] = [];
    await pushRefs(scene, account, { name: 'other', refs: 1 }, smallCommits('other').next);
    for (const count of [1, refs]) {
      const name = `refs-${count}`;
      const { next } = smallCommits(name);
      say(`Pushing ${count} refs`);
      await startServer(scene);
      await pushRefs(scene, account, { name, refs: count }, next);
      await endServer(scene);
      const stored = await storedFigures(scene, account, name);
      say('Measuring');
      lines.push({ refs: count, ...stored, ...(await measure(scene, account, name, next)) });
    }
    const date = new Date().toISOString().slice(0, 10);
    return { date, machine: describeMachine(), versions: await describeVersions(null), load, lines };
  });
}

async function storedFigures(
  scene: Scene,
  { username }: Account,
  name: string,
): Promise<Pick<RefCountLine, 'entityBytes' | 'snapshotBytes'>> {
  const synthetic = await openSyntheticPushes(scene, { username, name }, noCompactions());
  try {
    const state = await synthetic.state();
    const { snapshots } = repositories;
    const written = [snapshots?.write(state) ?? null, ...(snapshots?.parts?.write(state) ?? [])];
    // The snapshot of what was just read is saved in the background.
    await sleep(SNAPSHOT_SAVED_MS);
    return { entityBytes: repositories.sizeBytes(state), snapshotBytes: canonicalJson(written).length };
  } finally {
    await synthetic.close();
  }
}

type Served = Omit<RefCountLine, 'refs' | 'entityBytes' | 'snapshotBytes'>;

async function measure(scene: Scene, account: Account, name: string, next: () => SmallCommit): Promise<Served> {
  const server = await startServer(scene);
  const client = createRawClient(scene.port, account);
  const other = createRawClient(scene.port, account);
  try {
    await other.lsRemote('other');
    await server.group.settle(SETTLE_SPAN);
    const firstListingMs = await client.lsRemote(name);
    const listings = await repeated(LISTINGS, () => client.lsRemote(name));
    // The first push reads the objects of a cold cache.
    await pushOne(client, name, next);
    await server.group.settle(SETTLE_SPAN);
    const busy = { pushes: [] as number[], listings: [] as number[], pushTurnMs: 0, listingTurnMs: 0 };
    const others = await beside(other, async () => {
      for (let push = 0; push < PUSHES; push += 1) await pushAndList(server, client, name, next, busy);
    });
    return {
      firstListingMs,
      listingP50Ms: percentile(listings, 0.5),
      listingAfterPushP50Ms: percentile(busy.listings, 0.5),
      pushP50Ms: percentile(busy.pushes, 0.5),
      pushP99Ms: percentile(busy.pushes, 0.99),
      pushTurnMs: busy.pushTurnMs,
      listingTurnMs: busy.listingTurnMs,
      othersP50Ms: percentile(others, 0.5),
      othersP99Ms: percentile(others, 0.99),
    };
  } finally {
    client.close();
    other.close();
    await endServer(scene);
  }
}

async function pushAndList(
  server: WatchedServer,
  client: RawClient,
  name: string,
  next: () => SmallCommit,
  busy: { readonly pushes: number[]; readonly listings: number[]; pushTurnMs: number; listingTurnMs: number },
): Promise<void> {
  await server.longestTurnMs();
  busy.pushes.push(await pushOne(client, name, next));
  busy.pushTurnMs = Math.max(busy.pushTurnMs, await server.longestTurnMs());
  busy.listings.push(await client.lsRemote(name));
  busy.listingTurnMs = Math.max(busy.listingTurnMs, await server.longestTurnMs());
}

async function pushOne(client: RawClient, name: string, next: () => SmallCommit): Promise<number> {
  const [took] = await pushChain(client, name, next, { pushesMax: 1, deadline: Number.POSITIVE_INFINITY });
  return took ?? Number.NaN;
}

async function repeated(times: number, work: () => Promise<number>): Promise<readonly number[]> {
  const took: number[] = [];
  while (took.length < times) took.push(await work());
  return took;
}

/** Lists another repository again and again while the work goes on; returns the milliseconds of each listing. */
async function beside(client: RawClient, work: () => Promise<void>): Promise<readonly number[]> {
  const took: number[] = [];
  let working = true;
  const listing = (async () => {
    while (working) took.push(await client.lsRemote('other'));
  })();
  try {
    await work();
  } finally {
    working = false;
    await listing;
  }
  return took;
}

const HEAD = [
  'refs',
  'entity KB',
  'snapshot KB',
  'ls-remote, first ms',
  'again p50',
  'after a push p50',
  'push p50 ms',
  'push p99 ms',
  'longest turn: push',
  'ls-remote',
  'others p50 ms',
  'others p99 ms',
];

const LEGEND = [
  'ls-remote: the two requests of protocol v2, without a client that parses the answer; first: after a start. Push: one',
  'ref moves. Turn: processor time in ms that one turn of the event loop took. Others: ls-remote of a repository of one',
  'ref, again and again, beside the pushes and listings.',
].join('\n');

export function renderRefCountBench({ date, machine, versions, load, lines }: RefCountBench): string {
  const rows = lines.map((line) => [
    line.refs.toLocaleString('en-US'),
    ...[line.entityBytes / 1_000, line.snapshotBytes / 1_000].map(formatFigure),
    ...[line.firstListingMs, line.listingP50Ms, line.listingAfterPushP50Ms].map(formatFigure),
    ...[line.pushP50Ms, line.pushP99Ms, line.pushTurnMs, line.listingTurnMs].map(formatFigure),
    ...[line.othersP50Ms, line.othersP99Ms].map(formatFigure),
  ]);
  const about = `${date}, ${machine}; ${versions}; load ${load.toFixed(2)} before the run`;
  return `${about}\n\n${renderTable(HEAD, rows)}\n\n${LEGEND}\n`;
}
