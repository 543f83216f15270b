/**
 * What the scenario `scale` measures of each repository: listings, shallow clones and small pushes over HTTP.
 *
 * Invariants: the lines of a table take turns within one run, so that a slow minute of the machine affects all of
 * them. Processor time is of every node of the service and of its PostgreSQL, with the work put off until after the
 * answers, and without what they use while nothing asks them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, api } from '../../support/strata.ts';
import { createRawClient, pushChain, type RawClient } from '../raw-client.ts';
import type { Scene } from '../scene.ts';
import type { SmallCommit } from '../small-commits.ts';
import { median, percentile } from '../statistics.ts';

/** A repository, and the nodes that requests about it go to, one after the other. */
export interface ScaleLine {
  readonly label: string;
  readonly account: Account;
  readonly repository: string;
  /** The last of the commits pushed to `main` so far. */
  readonly tip: string;
  readonly next: () => SmallCommit;
  readonly asked: readonly Scene[];
  /** All nodes of the service. */
  readonly nodes: readonly Scene[];
}

/** An operation on one line: milliseconds at the median; processor time is null where one is too short to tell. */
export interface Figure {
  readonly operation: string;
  readonly p50Ms: number;
  readonly cpuMs: number | null;
  readonly databaseCpuMs: number | null;
}

export interface Measured {
  readonly label: string;
  /** Cores that the service uses while nothing asks it. */
  readonly idle: Spent;
  /** In the order of the table. */
  readonly figures: readonly Figure[];
}

interface Spans {
  /** How long each line lists and clones in a round. */
  readonly seconds: number;
  readonly rounds: number;
}

/** In all rounds together fewer than lead to a compaction immediately, whose work would be measured too. */
const PUSHES_MAX = 48;
/** The share of these pushes that are each followed by one listing and one clone. */
const WATCHED_SHARE = 1 / 3;
const IDLE_MS = 4_000;
const SETTLE_SPAN = { waitMs: 60_000, windowMs: 300 };

/** Lines whose servers have just started with empty caches, and are idle. */
export async function measureLines(
  lines: readonly ScaleLine[],
  { seconds, rounds }: Spans,
): Promise<readonly Measured[]> {
  const open = lines.map((line) => openLine(line));
  try {
    for (const line of open) await line.begin();
    for (let round = 0; round < rounds; round += 1) {
      for (const line of round % 2 === 0 ? open : open.toReversed()) {
        await line.read(seconds);
        await line.push(Math.max(1, Math.floor(PUSHES_MAX / rounds)));
      }
    }
    return open.map(({ label, result }) => ({ label, ...result() }));
  } finally {
    for (const line of open) line.close();
  }
}

interface OpenLine {
  readonly label: string;
  begin(): Promise<void>;
  read(seconds: number): Promise<void>;
  push(count: number): Promise<void>;
  result(): Omit<Measured, 'label'>;
  close(): void;
}

function openLine({ label, account, repository, next, asked, nodes, ...line }: ScaleLine): OpenLine {
  const clients = asked.map(({ port }) => createRawClient(port, account));
  const counted = createCounted(nodes);
  let { tip } = line;
  let turn = 0;
  const client = (): RawClient => {
    const chosen = clients[turn % clients.length];
    turn += 1;
    if (chosen === undefined) throw new RangeError(`${label} asks no node`);
    return chosen;
  };
  const list = (): Promise<number> => client().lsRemote(repository);
  const clone = (): Promise<number> => client().shallowClone(repository, tip);
  const push = async (): Promise<number> => {
    const commit = next();
    const once = { pushesMax: 1, deadline: Number.POSITIVE_INFINITY };
    const [took] = await pushChain(client(), repository, () => commit, once);
    tip = commit.id;
    return took ?? Number.NaN;
  };
  const page = (): Promise<number> => listRepositories(asked[0], account);
  return {
    label,
    async begin() {
      await counted.once('ls-remote, first after a start', list);
      await counted.once('shallow clone, first after a start', clone);
      // The first push reads the objects of a cold cache.
      await push();
      await page();
      await counted.rest();
    },
    async read(seconds) {
      await counted.during('ls-remote, again', seconds, list);
      await counted.during('shallow clone, again', seconds, clone);
      await counted.during('page of 50 repositories', seconds / 2, page);
    },
    async push(count) {
      const watched = Math.ceil(count * WATCHED_SHARE);
      await counted.times('small push', count - watched, push);
      for (let pushed = 0; pushed < watched; pushed += 1) {
        await push();
        await counted.once('ls-remote after a push', list);
        await counted.once('shallow clone after a push', clone);
      }
      await counted.settle();
    },
    result: counted.result,
    close() {
      for (const each of clients) each.close();
    },
  };
}

async function listRepositories(node: Scene | undefined, account: Account): Promise<number> {
  if (node === undefined) throw new RangeError('There is no node');
  const since = performance.now();
  const answer = await api(node, account.token, 'GET', '/v1/repositories?limit=50');
  if (answer.status !== 200) throw new Error(`The list was answered ${answer.status}: ${answer.text.slice(0, 200)}`);
  return performance.now() - since;
}

interface Samples {
  readonly tookMs: number[];
  /** The figures of each round, for one operation. */
  readonly cpuMs: number[];
  readonly databaseCpuMs: number[];
}

interface Counted {
  once(operation: string, run: () => Promise<number>): Promise<void>;
  during(operation: string, seconds: number, run: () => Promise<number>): Promise<void>;
  times(operation: string, count: number, run: () => Promise<number>): Promise<void>;
  settle(): Promise<void>;
  /** Waits until the service is idle, and measures what it uses then. */
  rest(): Promise<void>;
  result(): Omit<Measured, 'label'>;
}

/** Runs operations and keeps what each took; `run` resolves with its milliseconds. */
function createCounted(nodes: readonly Scene[]): Counted {
  const operations = new Map<string, Samples>();
  let idle: Spent = { nodes: 0, database: 0 };
  const samplesOf = (operation: string): Samples => {
    const samples = operations.get(operation) ?? { tookMs: [], cpuMs: [], databaseCpuMs: [] };
    operations.set(operation, samples);
    return samples;
  };
  const settle = async (): Promise<void> => {
    for (const { server } of nodes) await server?.group.settle(SETTLE_SPAN);
  };
  const counted = async (operation: string, run: () => Promise<number>, more: (made: number) => boolean) => {
    const samples = samplesOf(operation);
    const [before, since] = [spentBy(nodes), performance.now()];
    let made = 0;
    while (made === 0 || more(made)) {
      samples.tookMs.push(await run());
      made += 1;
    }
    await settle();
    const [after, ms] = [spentBy(nodes), performance.now() - since];
    samples.cpuMs.push(Math.max(0, (after.nodes - before.nodes) * 1_000 - idle.nodes * ms) / made);
    samples.databaseCpuMs.push(Math.max(0, (after.database - before.database) * 1_000 - idle.database * ms) / made);
  };
  return {
    async once(operation, run) {
      samplesOf(operation).tookMs.push(await run());
    },
    during: (operation, seconds, run) => {
      const deadline = performance.now() + seconds * 1_000;
      return counted(operation, run, () => performance.now() < deadline);
    },
    times: (operation, count, run) => counted(operation, run, (made) => made < count),
    settle,
    async rest() {
      await settle();
      idle = await idleCores(nodes);
    },
    result: () => ({ idle, figures: [...operations].map(([operation, samples]) => figureOf(operation, samples)) }),
  };
}

function figureOf(operation: string, { tookMs, cpuMs, databaseCpuMs }: Samples): Figure {
  const middle = (values: readonly number[]): number | null => (values.length === 0 ? null : median(values));
  const spent = { cpuMs: middle(cpuMs), databaseCpuMs: middle(databaseCpuMs) };
  return { operation, p50Ms: percentile(tookMs, 0.5), ...spent };
}

/** Seconds of all processors, or cores. */
export interface Spent {
  readonly nodes: number;
  readonly database: number;
}

function spentBy(nodes: readonly Scene[]): Spent {
  return {
    nodes: nodes.reduce((sum, { server }) => sum + (server?.group.cpuSeconds() ?? 0), 0),
    database: nodes[0]?.databaseCpuSeconds() ?? 0,
  };
}

async function idleCores(nodes: readonly Scene[]): Promise<Spent> {
  const [before, since] = [spentBy(nodes), performance.now()];
  await sleep(IDLE_MS);
  const [after, seconds] = [spentBy(nodes), (performance.now() - since) / 1_000];
  return { nodes: (after.nodes - before.nodes) / seconds, database: (after.database - before.database) / seconds };
}
