/**
 * What one change of a file takes of one client that has nothing: a request over REST, or a clone, a commit and a push;
 * and a commit and a push where the clone is there already.
 *
 * Invariants: the ways and sides alternate run by run, each on a repository of its own. Every change is a new one. The
 * requests of a run that is not measured are counted.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ChainFile } from '../commit-chain.ts';
import { createConnection } from '../connection.ts';
import { git } from '../git.ts';
import { perform } from '../load.ts';
import { startRecorder } from '../recorder.ts';
import type { ChangeResult } from '../results.ts';
import type { Repository, Side } from '../sides/side.ts';
import { median } from '../statistics.ts';
import { startChainWriter } from './chain-writer.ts';
import { clientOptions, urlOf } from './recording.ts';
import type { BenchContext } from './scenario.ts';

/** The first one is counted, and the second warms up. */
const FIRST_MEASURED_RUN = 2;
const RUNS_MIN = 3;
const RUNS_MAX = 20;

interface Place {
  readonly context: BenchContext;
  readonly side: Side;
  readonly repository: Repository;
  readonly file: ChainFile;
  /** For clones. */
  readonly folder: string;
}

/** Makes a change by requests to this port. */
type Change = (run: number, port: number) => Promise<void>;

interface Way {
  readonly title: string;
  /** `none`: over REST. `new`: each change begins without a clone, and leaves one. */
  readonly clone: 'none' | 'kept' | 'new';
  open(place: Place): Promise<Change>;
}

const WAYS: readonly Way[] = [
  { title: 'one request over REST', clone: 'none', open: openRest },
  { title: 'commit and push', clone: 'kept', open: openClone },
  {
    title: 'clone, commit and push',
    clone: 'new',
    open: async (place) => async (run, port) => {
      await cloneLast(place, port);
      await commitAndPush(place, run, port);
    },
  },
];

interface Station {
  readonly way: Way;
  readonly place: Place;
  readonly change: Change;
  readonly requests: number;
  readonly elapsedMs: number[];
}

export async function measureWholeChanges(
  context: BenchContext,
  tree: string,
  sides: readonly Side[],
): Promise<readonly ChangeResult[]> {
  const { file } = await context.commitChain();
  const folder = await mkdtemp(path.join(context.workFolder, 'whole-changes-'));
  const places: Place[] = [];
  try {
    const stations: Station[] = [];
    for (const way of WAYS) {
      for (const side of sides.filter(({ rest }) => way.clone !== 'none' || rest !== null)) {
        const repository = await side.createRepository(`${path.basename(folder)}-${way.clone}`, context.project);
        const own = path.join(folder, `${stations.length}`);
        await mkdir(own);
        const place = { context, side, repository, file, folder: own };
        places.push(place);
        stations.push(await openStation(way, place));
      }
    }
    await measureInTurn(stations, context.rounds * context.secondsPerRound * 1_000 * stations.length);
    return stations.map(({ way, place: { side }, requests, elapsedMs }) => {
      return { tree, way: way.title, side: side.label, runs: elapsedMs.length, requests, medianMs: median(elapsedMs) };
    });
  } finally {
    for (const { side, repository } of places) await side.removeRepository(repository);
    await rm(folder, { recursive: true, force: true });
  }
}

async function openStation(way: Way, place: Place): Promise<Station> {
  const change = await way.open(place);
  const recorder = await startRecorder(place.side.port);
  try {
    await change(0, recorder.port);
    const requests = recorder.take().length;
    await tidy(way, place);
    await change(1, place.side.port);
    await tidy(way, place);
    return { way, place, change, requests, elapsedMs: [] };
  } finally {
    await recorder.close();
  }
}

async function measureInTurn(stations: readonly Station[], budgetMs: number): Promise<void> {
  const deadline = performance.now() + budgetMs;
  for (let run = 0; run < RUNS_MAX && (run < RUNS_MIN || performance.now() < deadline); run += 1) {
    for (const { way, change, place, elapsedMs } of run % 2 === 0 ? stations : stations.toReversed()) {
      await place.side.group.settle();
      const start = performance.now();
      await change(FIRST_MEASURED_RUN + run, place.side.port);
      elapsedMs.push(performance.now() - start);
      await tidy(way, place);
    }
  }
}

async function tidy({ clone }: Way, place: Place): Promise<void> {
  if (clone === 'new') await rm(cloneOf(place), { recursive: true });
}

function cloneOf({ folder }: Place): string {
  return path.join(folder, 'clone');
}

async function openRest({ context, side, repository }: Place): Promise<Change> {
  const writer = await startChainWriter(context, side, [repository]);
  return async (_, port) => {
    const operation = writer.next(0);
    if (operation === null) throw new Error('The commit chain is too short for this many runs');
    const connection = createConnection(port);
    await perform(connection, operation);
    connection.close();
  };
}

async function openClone(place: Place): Promise<Change> {
  await cloneLast(place, place.side.port);
  return (run, port) => commitAndPush(place, run, port);
}

/** Clones the last commit with its files, the least of which a commit with git can be made. */
async function cloneLast(place: Place, port: number): Promise<void> {
  const { side, repository } = place;
  await git([...clientOptions(side), 'clone', '--quiet', '--depth=1', urlOf(port, repository), cloneOf(place)]);
}

async function commitAndPush(place: Place, run: number, port: number): Promise<void> {
  const { side, repository, file } = place;
  const clone = cloneOf(place);
  const target = path.join(clone, file.path);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, file.text(run));
  // The project may ignore such files.
  await git(['add', '--force', file.path], { cwd: clone });
  await git(['commit', '--quiet', '--message', `Change ${run}`], { cwd: clone });
  await git([...clientOptions(side), 'push', '--quiet', urlOf(port, repository), 'HEAD'], { cwd: clone });
}
