/**
 * Measures what the place of the layers costs: small pushes, and clones by a server with an empty cache, with layers on
 * the file system, in a bucket of a real S3 server, and in one that answers 30 ms later. Counts the requests to S3.
 *
 * Invariants: the sides work in turn, in rounds that reverse the order, and each ratio is of one round. The requests
 * are counted between the service and S3. The 30 ms are added to every answer of S3, and to nothing else.
 */
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startS3Proxy } from '../support/s3-proxy.ts';
import { type Account, createAccount, gitUrl } from '../support/strata.ts';
import { startS3Server } from '../support/versitygw.ts';
import { describeMachine, describeVersions } from './environment.ts';
import { git } from './git.ts';
import { type Project, prepareProject } from './project.ts';
import { createRawClient, pushChain } from './raw-client.ts';
import { createRepository, type Ground, onGround, openScene, type Scene, startServer } from './scene.ts';
import { smallCommits } from './small-commits.ts';
import { median, percentile } from './statistics.ts';
import { formatFigure, renderTable } from './table.ts';

const FAR_MS = 30;
const CLIENTS = 8;
/** So few layers that no compaction begins. */
const RECENT_PUSHES = 8;
/** Fewer than lead to a compaction immediately. */
const PUSHES_PER_ROUND_MAX = 60;
const SETTLE_SPAN = { waitMs: 20_000, windowMs: 200 };

interface Side {
  readonly title: string;
  readonly scene: Scene;
  readonly account: Account;
  /** Requests to S3 so far; null for the file system. */
  readonly requests: (() => readonly string[]) | null;
}

export interface StorageLine {
  readonly operation: string;
  readonly side: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMs: number;
  /** The median of the rounds, over the file system's time. */
  readonly ratio: number;
  /** Requests to S3 for one operation, by method; null for the file system. */
  readonly requests: string | null;
}

export interface StorageBench {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  readonly load: number;
  readonly repository: string;
  readonly lines: readonly StorageLine[];
}

interface Options {
  readonly seconds: number;
  readonly rounds: number;
  readonly bundle: string | null;
  readonly say: (text: string) => void;
}

export async function benchStorage({ seconds, rounds, bundle, say }: Options): Promise<StorageBench> {
  const load = os.loadavg()[0] ?? 0;
  return onGround(async (ground) => {
    const project = await prepareProject(ground.folder, bundle);
    say('Starting three services');
    const sides = await startSides(ground);
    for (const side of sides) await fill(side, project);
    const lines: StorageLine[] = [];
    for (const operation of OPERATIONS) {
      say(operation.title);
      lines.push(...(await measure(operation, sides, seconds, rounds)));
    }
    const date = new Date().toISOString().slice(0, 10);
    const versions = await describeVersions(null);
    return { date, machine: describeMachine(), versions, load, repository: project.description, lines };
  });
}

async function startSides(ground: Ground): Promise<readonly Side[]> {
  const ending = { onTestFinished: (step: () => void | Promise<void>) => void ground.steps.push(step) };
  const s3 = await startS3Server(ending);
  const sides: Side[] = [await startSide(ground, { name: 'files', title: 'file system', env: {}, requests: null })];
  for (const { name, title, delayMs } of [
    { name: 'near', title: 'S3', delayMs: 0 },
    { name: 'far', title: `S3, ${FAR_MS} ms away`, delayMs: FAR_MS },
  ]) {
    const proxy = await startS3Proxy(ending, s3.port);
    if (delayMs > 0) proxy.fault = () => ({ kind: 'delay', ms: delayMs });
    const env = {
      ...{ STRATA_STORAGE: 's3', STRATA_S3_ENDPOINT: proxy.url, STRATA_S3_REGION: s3.region },
      ...{ STRATA_S3_BUCKET: s3.bucket, STRATA_S3_PREFIX: name, STRATA_S3_ACCESS_KEY_ID: s3.accessKeyId },
      STRATA_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    };
    sides.push(await startSide(ground, { name, title, env, requests: () => proxy.requests }));
  }
  return sides;
}

async function startSide(
  ground: Ground,
  of: { readonly name: string; readonly env: Readonly<Record<string, string>> } & Pick<Side, 'title' | 'requests'>,
): Promise<Side> {
  const scene = await openScene(ground, of.name, of.env);
  await startServer(scene);
  return { title: of.title, requests: of.requests, scene, account: await createAccount(scene, 'bench') };
}

/** `project`: one layer. `recent`: as many layers as there are pushes. */
async function fill(side: Side, project: Project): Promise<void> {
  const refs = ['refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*'];
  await createRepository(side.scene, side.account, 'project', project.defaultBranch);
  await git(['push', '--quiet', gitUrl(side.scene, side.account, 'project'), ...refs], { cwd: project.folder });
  await createRepository(side.scene, side.account, 'recent');
  const client = createRawClient(side.scene.port, side.account);
  const until = { pushesMax: RECENT_PUSHES, deadline: Number.POSITIVE_INFINITY };
  await pushChain(client, 'recent', smallCommits('recent').next, until);
  client.close();
}

/** Works until the deadline, or once. Returns the milliseconds of each operation. */
type Work = (side: Side, round: number, deadline: number) => Promise<readonly number[]>;

interface Operation {
  readonly title: string;
  /** What is not measured of a round. */
  readonly prepare: (side: Side, round: number) => Promise<void>;
  readonly work: Work;
}

function smallPushes(clients: number): Operation {
  const namesOf = (round: number) =>
    Array.from({ length: clients }, (_, number) => `pushes-${clients}-${round}-${number}`);
  return {
    title: clients === 1 ? 'small push, alone' : `small push, ${clients} clients`,
    prepare: async (side, round) => {
      for (const name of namesOf(round)) await createRepository(side.scene, side.account, name);
    },
    work: async (side, round, deadline) => {
      const took = namesOf(round).map(async (name) => {
        const client = createRawClient(side.scene.port, side.account);
        try {
          return await pushChain(client, name, smallCommits(name).next, { pushesMax: PUSHES_PER_ROUND_MAX, deadline });
        } finally {
          client.close();
        }
      });
      return (await Promise.all(took)).flat();
    },
  };
}

function coldClone(name: string, title: string): Operation {
  return {
    title: `cold clone of ${title}`,
    prepare: async ({ scene, account }) => {
      await startServer(scene);
      // The first request opens the connections to the database.
      await git(['ls-remote', gitUrl(scene, account, name)]);
    },
    work: async ({ scene, account }, round) => {
      const folder = path.join(scene.dataDir, `clone-${name}-${round}.git`);
      const since = performance.now();
      await git(['clone', '--quiet', '--bare', gitUrl(scene, account, name), folder]);
      const ms = performance.now() - since;
      await rm(folder, { recursive: true });
      return [ms];
    },
  };
}

const OPERATIONS: readonly Operation[] = [
  smallPushes(1),
  smallPushes(CLIENTS),
  coldClone('project', 'the project, one layer'),
  coldClone('recent', `${RECENT_PUSHES} small pushes`),
];

interface Round {
  readonly took: readonly number[];
  readonly cpuMs: number;
  readonly requests: readonly string[];
}

async function measure(
  operation: Operation,
  sides: readonly Side[],
  seconds: number,
  rounds: number,
): Promise<readonly StorageLine[]> {
  const found = new Map<Side, Round[]>(sides.map((side) => [side, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      found.get(side)?.push(await measureRound(operation, side, round, seconds));
    }
  }
  const [first] = sides;
  const own = (first === undefined ? undefined : found.get(first)) ?? [];
  return sides.map((side) => {
    const roundsOf = found.get(side) ?? [];
    const took = roundsOf.flatMap((round) => round.took);
    const ratios = roundsOf.map((round, index) => median(round.took) / median(own[index]?.took ?? [Number.NaN]));
    const requests = roundsOf.flatMap((round) => round.requests);
    return {
      ...{ operation: operation.title, side: side.title },
      ...{ p50Ms: percentile(took, 0.5), p99Ms: percentile(took, 0.99) },
      cpuMs: median(roundsOf.map(({ cpuMs }) => cpuMs)),
      ratio: median(ratios),
      requests: side.requests === null ? null : tally(requests, took.length),
    };
  });
}

async function measureRound(operation: Operation, side: Side, round: number, seconds: number): Promise<Round> {
  await operation.prepare(side, round);
  const { server } = side.scene;
  if (server === null) throw new TypeError('The server has ended');
  await server.group.settle(SETTLE_SPAN);
  const [requestsBefore, cpuBefore] = [side.requests?.().length ?? 0, server.group.cpuSeconds()];
  const took = await operation.work(side, round, performance.now() + seconds * 1_000);
  const requests = side.requests?.().slice(requestsBefore) ?? [];
  await server.group.settle(SETTLE_SPAN);
  return { took, cpuMs: ((server.group.cpuSeconds() - cpuBefore) * 1_000) / took.length, requests };
}

/** E.g. `1 PUT`. */
function tally(requests: readonly string[], operations: number): string {
  const counts = new Map<string, number>();
  for (const request of requests) {
    const [method = ''] = request.split(' ');
    counts.set(method, (counts.get(method) ?? 0) + 1);
  }
  return [...counts].map(([method, count]) => `${formatFigure(count / operations)} ${method}`).join(', ') || 'none';
}

const HEAD = ['operation', 'layers', 'p50 ms', 'p99 ms', 'over the file system', 'CPU ms', 'requests to S3'];

const LEGEND = [
  `Small pushes: by requests over kept connections, to a repository of each client. Clones: by the real git, from a`,
  'server that has just started with an empty cache. Over the file system: the medians of each round, divided. CPU: of',
  'the service for one operation, without PostgreSQL and S3. S3 is versitygw on this machine, behind a proxy that',
  `counts its requests and adds ${FAR_MS} ms to each answer where the table says so.`,
].join('\n');

export function renderStorageBench({ date, machine, versions, load, repository, lines }: StorageBench): string {
  const rows = lines.map(({ operation, side, p50Ms, p99Ms, ratio, cpuMs, requests }, index) => [
    lines[index - 1]?.operation === operation ? '' : operation,
    side,
    ...[p50Ms, p99Ms].map(formatFigure),
    requests === null ? '' : `${formatFigure(ratio)}x`,
    formatFigure(cpuMs),
    requests ?? '',
  ]);
  const about = `${date}, ${machine}; ${versions}; load ${load.toFixed(2)} before the run`;
  return `${about}\n\nRepository: ${repository}\n\n${renderTable(HEAD, rows)}\n\n${LEGEND}\n`;
}
