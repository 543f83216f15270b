/**
 * Measures what a repository costs after many pushes, beside one of the same content that came in one push.
 *
 * Invariants: the layers, events and compactions are those of real pushes. Each figure is of a server that has
 * started with an empty cache and has finished what it does behind the pushes.
 */
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { canonicalJson } from '../../core/kernel/json.ts';
import { repositories } from '../../core/repository/evolve.ts';
import { type Account, createAccount, gitUrl } from '../support/strata.ts';
import { describeMachine, describeVersions } from './environment.ts';
import { git } from './git.ts';
import { createRawClient, pushChain } from './raw-client.ts';
import { createRepository, endServer, onGround, openScene, type Scene, startServer } from './scene.ts';
import { type SmallCommit, smallCommits } from './small-commits.ts';
import { percentile } from './statistics.ts';
import {
  type CompactionTotals,
  FORCED_PUSH_EVERY,
  noCompactions,
  openSyntheticPushes,
  PUSHES_PER_DAY,
  type SyntheticPushes,
} from './synthetic-pushes.ts';
import { formatFigure, renderTable } from './table.ts';

/** The read models of a long history take their time. */
const CAUGHT_UP_SPAN = { waitMs: 15 * 60_000, windowMs: 2_000 };
const SETTLE_SPAN = { waitMs: 20_000, windowMs: 300 };
/** Fewer than lead to a compaction immediately, whose work would be measured too. */
const TIMED_PUSHES = 50;
const REPOSITORY = 'pushed';

export interface GrowthLine {
  readonly pushes: number;
  readonly layers: number;
  readonly entityBytes: number;
  readonly snapshotBytes: number;
  readonly snapshots: number;
  readonly allSnapshotsBytes: number;
  /** By a server with an empty cache, and by the same one again. */
  readonly coldCloneMs: number;
  readonly cloneMs: number;
  /** The figures of the same content in one layer. */
  readonly wholeCloneMs: number;
  readonly pushP50Ms: number;
  readonly pushP99Ms: number;
  readonly longestTurnMs: number;
  readonly compaction: Readonly<CompactionTotals>;
}

export interface GrowthBench {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  readonly load: number;
  readonly lines: readonly GrowthLine[];
}

interface Options {
  /** The most pushes; a tenth of them and one push are measured before. */
  readonly pushes: number;
  readonly say: (text: string) => void;
}

export async function benchGrowth({ pushes, say }: Options): Promise<GrowthBench> {
  const load = os.loadavg()[0] ?? 0;
  return onGround(async (ground) => {
    const scene = await openScene(ground, 'growth');
    await startServer(scene);
    const account = await createAccount(scene, 'bench');
    await createRepository(scene, account, REPOSITORY);
    await endServer(scene);
    const commits = smallCommits('growth');
    const at = { username: account.username, name: REPOSITORY };
    const lines: GrowthLine[] = [];
    const totals = noCompactions();
    let done = 0;
    for (const count of [1, Math.round(pushes / 10), pushes]) {
      say(`${count} pushes`);
      const synthetic = await openSyntheticPushes(scene, at, totals);
      let stored: Stored;
      try {
        await synthetic.push(commits, count - done);
        stored = { ...(await storedFigures(scene, synthetic)), compaction: { ...totals } };
      } finally {
        await synthetic.close();
      }
      const { compactions, drops, rewrittenBytes, pushedBytes, cpuSeconds } = totals;
      const rewritten = formatFigure(rewrittenBytes / pushedBytes);
      say(`${compactions} compactions, ${drops} drops, ${rewritten} rewritten, ${formatFigure(cpuSeconds)} s of CPU`);
      say('Measuring');
      lines.push({ pushes: count, ...stored, ...(await measure(scene, account, count, commits.next)) });
      done = count + TIMED_PUSHES;
    }
    const date = new Date().toISOString().slice(0, 10);
    return { date, machine: describeMachine(), versions: await describeVersions(null), load, lines };
  });
}

type Stored = Pick<
  GrowthLine,
  'layers' | 'entityBytes' | 'snapshotBytes' | 'snapshots' | 'allSnapshotsBytes' | 'compaction'
>;

async function storedFigures({ env }: Scene, synthetic: SyntheticPushes): Promise<Omit<Stored, 'compaction'>> {
  const state = await synthetic.state();
  const { snapshots } = repositories;
  const written = [snapshots?.write(state) ?? null, ...(snapshots?.parts?.write(state) ?? [])];
  const client = new pg.Client(env['STRATA_DATABASE_URL']);
  await client.connect();
  try {
    const { rows } = await client.query<{ count: number; bytes: number }>(
      `SELECT count(*)::integer AS count, coalesce(sum(length(state)), 0)::integer AS bytes
       FROM snapshots WHERE stream LIKE 'repository-%'`,
    );
    return {
      layers: state.layers.length,
      entityBytes: repositories.sizeBytes(state),
      snapshotBytes: canonicalJson(written).length,
      snapshots: rows[0]?.count ?? 0,
      allSnapshotsBytes: rows[0]?.bytes ?? 0,
    };
  } finally {
    await client.end();
  }
}

type Served = Pick<
  GrowthLine,
  'coldCloneMs' | 'cloneMs' | 'wholeCloneMs' | 'pushP50Ms' | 'pushP99Ms' | 'longestTurnMs'
>;

async function measure(scene: Scene, account: Account, count: number, next: () => SmallCommit): Promise<Served> {
  const behind = await startServer(scene);
  if (!(await behind.group.settle(CAUGHT_UP_SPAN))) throw new Error('The server did not become idle');
  const server = await startServer(scene);
  const folder = path.join(scene.ground.folder, `clone-${count}.git`);
  const coldCloneMs = await clone(scene, account, REPOSITORY, folder);
  const cloneMs = await clone(scene, account, REPOSITORY, `${folder}-again`);
  const whole = `whole-${count}`;
  await createRepository(scene, account, whole);
  await git(['push', '--quiet', gitUrl(scene, account, whole), 'refs/heads/*:refs/heads/*'], { cwd: folder });
  await rm(folder, { recursive: true });
  await server.group.settle(SETTLE_SPAN);
  await server.longestTurnMs();
  const client = createRawClient(scene.port, account);
  const until = { pushesMax: TIMED_PUSHES, deadline: Number.POSITIVE_INFINITY };
  const took = await pushChain(client, REPOSITORY, next, until);
  client.close();
  const longestTurnMs = await server.longestTurnMs();
  await startServer(scene);
  const wholeCloneMs = await clone(scene, account, whole, folder);
  await rm(folder, { recursive: true });
  await endServer(scene);
  const [pushP50Ms, pushP99Ms] = [percentile(took, 0.5), percentile(took, 0.99)];
  return { coldCloneMs, cloneMs, wholeCloneMs, pushP50Ms, pushP99Ms, longestTurnMs };
}

async function clone({ server, ...scene }: Scene, account: Account, name: string, folder: string): Promise<number> {
  await git(['ls-remote', gitUrl(scene, account, name)]);
  await server?.group.settle(SETTLE_SPAN);
  const since = performance.now();
  await git(['clone', '--quiet', '--bare', gitUrl(scene, account, name), folder]);
  return performance.now() - since;
}

const HEAD = [
  'pushes',
  'layers',
  'entity KB',
  'snapshot KB',
  'all snapshots KB',
  'cold clone ms',
  'of one push',
  'clone again ms',
  'push p50 ms',
  'push p99 ms',
  'longest turn ms',
];
const COMPACTION_HEAD = [
  'pushes',
  'compactions',
  'of them drops',
  'pushed KB',
  'rewritten',
  'CPU ms a push',
  'CPU ms a KB pushed',
];

const LEGEND = [
  'Pushes of three objects each; layers and events are written as pushes leave them. The service’s own policies and steps',
  `compact, by a clock that moves with the pushes: ${PUSHES_PER_DAY.toLocaleString('en-US')} a day, ten a second, one of ${FORCED_PUSH_EVERY} forced, and 30 days of`,
  'retention. Cold clone: by the real git, from a server with an empty cache; of one push: of a repository that got the',
  `same commits in one push. Push: ${TIMED_PUSHES} more, over HTTP. Turn: processor time that one turn of the event loop took`,
  'during them. Rewritten: bytes of layers that compactions wrote, for each byte of a layer that a push brought; a drop',
  'writes all objects that it keeps.',
].join('\n');

export function renderGrowthBench({ date, machine, versions, load, lines }: GrowthBench): string {
  const kb = (bytes: number): string => formatFigure(bytes / 1_000);
  const rows = lines.map((line) => [
    ...[line.pushes, line.layers].map((count) => count.toLocaleString('en-US')),
    ...[line.entityBytes, line.snapshotBytes].map(kb),
    `${kb(line.allSnapshotsBytes)} (${line.snapshots})`,
    ...[line.coldCloneMs, line.wholeCloneMs, line.cloneMs].map(formatFigure),
    ...[line.pushP50Ms, line.pushP99Ms, line.longestTurnMs].map(formatFigure),
  ]);
  const compactions = lines.map(({ pushes, compaction: { pushedBytes, rewrittenBytes, cpuSeconds, ...more } }) => [
    ...[pushes, more.compactions, more.drops].map((count) => count.toLocaleString('en-US')),
    kb(pushedBytes),
    `${formatFigure(rewrittenBytes / pushedBytes)}x`,
    formatFigure((cpuSeconds * 1_000) / pushes),
    formatFigure((cpuSeconds * 1_000) / (pushedBytes / 1_000)),
  ]);
  const about = `${date}, ${machine}; ${versions}; load ${load.toFixed(2)} before the run`;
  const tables = [renderTable(HEAD, rows), renderTable(COMPACTION_HEAD, compactions)];
  return `${about}\n\n${tables.join('\n\n')}\n\n${LEGEND}\n`;
}
