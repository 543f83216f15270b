/**
 * Measures the wall time of a real git client, alone, against each side and against the floor.
 *
 * Invariants: the servers alternate run by run; the floor's canned answers are those that the peer (or the only
 * side) gave to the same command.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { git } from '../git.ts';
import type { ClientResult } from '../results.ts';
import { startFloor } from '../sides/floor.ts';
import type { Repository, Side } from '../sides/side.ts';
import { median } from '../statistics.ts';
import type { ClientArguments, ClientCommand } from './client-commands.ts';
import { clientOptions, record, urlOf } from './recording.ts';
import type { BenchContext } from './scenario.ts';

/** Runs 0 and 1 warm up; the floor replays the answers to run 1. */
const RECORDED_RUN = 1;
const FIRST_MEASURED_RUN = 2;
const RUNS_MIN = 3;

interface Job {
  readonly command: ClientCommand;
  readonly cwd: string;
  readonly arguments: ClientArguments;
  readonly destination: string;
}

/** A server that the command runs against: the floor or a side. */
interface Station {
  readonly label: string;
  readonly elapsedMs: number[];
  /** Returns the client's wall time in milliseconds. */
  runOnce(run: number): Promise<number>;
  dispose(): Promise<void>;
}

/**
 * Measures one command.
 * @param sides the subject first, the peer last.
 */
export async function measureRealClient(
  command: ClientCommand,
  context: BenchContext,
  sides: readonly Side[],
): Promise<ClientResult> {
  const peer = sides.at(-1);
  if (peer === undefined) throw new Error('There is no side to run the client against');
  const folder = await mkdtemp(path.join(context.workFolder, 'real-client-'));
  const stations: Station[] = [];
  try {
    const job: Job = { command, destination: path.join(folder, 'clone'), ...(await command.prepare(context, folder)) };
    stations.push(await openFloor(job, context, peer));
    for (const side of sides) stations.push(await openSide(job, context, side));
    const started = performance.now();
    const budgetMs = context.rounds * context.secondsPerRound * 1000;
    for (let run = FIRST_MEASURED_RUN; run < FIRST_MEASURED_RUN + command.runsMax; run += 1) {
      if (run >= FIRST_MEASURED_RUN + RUNS_MIN && performance.now() - started > budgetMs) break;
      const order = run % 2 === 0 ? stations : stations.toReversed();
      for (const station of order) station.elapsedMs.push(await station.runOnce(run));
    }
    return summarise(command, stations);
  } finally {
    for (const station of stations) await station.dispose();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Records the peer's answers to one run; the floor then serves that run in every repetition. */
async function openFloor(job: Job, context: BenchContext, peer: Side): Promise<Station> {
  const content = job.command.repository === 'project' ? context.project : null;
  const repository = await peer.createRepository(`client-${job.command.name}-recorded`, content);
  const argumentsAt = (url: string, run: number) => job.arguments({ url, run, destination: job.destination });
  if (job.command.sequential) await timeGit(job, peer, argumentsAt(urlOf(peer.port, repository), 0));
  const exchanges = await record(peer, repository, job.cwd, (url) => argumentsAt(url, RECORDED_RUN));
  await rm(job.destination, { recursive: true, force: true });
  await peer.removeRepository(repository);
  const floor = await startFloor(exchanges);
  return {
    label: 'floor',
    elapsedMs: [],
    runOnce: () => timeGit(job, peer, argumentsAt(urlOf(floor.port, repository), RECORDED_RUN)),
    dispose: () => floor.close(),
  };
}

async function openSide(job: Job, context: BenchContext, side: Side): Promise<Station> {
  const { command } = job;
  const purpose = `client-${command.name}`;
  const made: Repository[] = [];
  const repositoryFor = async (run: number): Promise<Repository> => {
    const existing = made[0];
    if (command.repository === 'project' && existing !== undefined) return existing;
    if (existing !== undefined) await side.removeRepository(existing);
    const content = command.repository === 'project' ? context.project : null;
    const repository = await side.createRepository(`${purpose}-${run}`, content);
    made.splice(0, 1, repository);
    return repository;
  };
  const runOnce = async (run: number): Promise<number> => {
    const url = urlOf(side.port, await repositoryFor(run));
    return timeGit(job, side, job.arguments({ url, run, destination: job.destination }));
  };
  for (let run = 0; run < FIRST_MEASURED_RUN; run += 1) await runOnce(run);
  return {
    label: side.label,
    elapsedMs: [],
    runOnce,
    async dispose() {
      for (const repository of made) await side.removeRepository(repository);
    },
  };
}

/** Measures the wall time of the command, and then removes what it left. */
async function timeGit(job: Job, side: Side, args: readonly string[]): Promise<number> {
  const start = performance.now();
  await git([...clientOptions(side), ...args], { cwd: job.cwd });
  const elapsedMs = performance.now() - start;
  await rm(job.destination, { recursive: true, force: true });
  return elapsedMs;
}

function summarise(command: ClientCommand, stations: readonly Station[]): ClientResult {
  const [floor, ...others] = stations;
  const sides = others.map(({ label, elapsedMs }) => ({ side: label, medianMs: median(elapsedMs) }));
  const floorMs = median(floor?.elapsedMs ?? []);
  const [subject, peer] = sides;
  const share =
    subject === undefined || peer === undefined ? null : closedShare(peer.medianMs, subject.medianMs, floorMs);
  const { name, title, targetShare } = command;
  return { name, title, runs: floor?.elapsedMs.length ?? 0, floorMs, sides, share, targetShare };
}

/** Returns the part of the gap between peer and floor that the subject closes; null when there is no gap. */
function closedShare(peerMs: number, subjectMs: number, floorMs: number): number | null {
  return peerMs > floorMs ? (peerMs - subjectMs) / (peerMs - floorMs) : null;
}
