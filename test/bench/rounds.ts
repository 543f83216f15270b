/**
 * Measures one scenario with the sides in alternation within one run, so that a slow minute of the machine affects all
 * of them.
 *
 * Invariants: only one side works at a time; the order reverses each round; ratios are computed for each round.
 */
import { runLoad } from './load.ts';
import { type MemorySample, startMemorySampler } from './memory.ts';
import { machineCpuSeconds } from './processes.ts';
import type { Comparison, ScenarioResult, SideResult } from './results.ts';
import type { BenchContext, PreparedWorkload, Scenario } from './scenarios/scenario.ts';
import type { Side } from './sides/side.ts';
import { median, percentile } from './statistics.ts';

const MEMORY_INTERVAL_MS = 500;
/** The share of a round for which reads warm up caches and compilers before it, on every side. */
const WARM_UP_SHARE = 0.2;

interface Round {
  readonly perSecond: number;
  readonly cpuMsPerOperation: number;
  readonly latenciesMs: readonly number[];
  readonly generatorCores: number;
  readonly othersCores: number;
  readonly memory: MemorySample;
}

interface Participant {
  readonly side: Side;
  readonly workload: PreparedWorkload;
  readonly rounds: Round[];
}

/** Counts the durability calls of one push, as text for the table. */
export type DurabilityProbe = (side: Side, workload: PreparedWorkload) => Promise<string>;

/**
 * Measures one scenario.
 * @param sides the subject first; the others are compared with it.
 */
export async function measureScenario(
  scenario: Scenario,
  context: BenchContext,
  sides: readonly Side[],
  probe: DurabilityProbe,
): Promise<ScenarioResult> {
  const participants: Participant[] = [];
  try {
    for (const side of sides) {
      participants.push({ side, workload: await scenario.prepare(context, side, scenario.clients), rounds: [] });
    }
    const rounds = Math.ceil(context.rounds * (scenario.roundFactor ?? 1));
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? participants : participants.toReversed();
      for (const participant of order) participant.rounds.push(await measureRound(scenario, context, participant));
    }
    const results: SideResult[] = [];
    const subject = participants[0];
    for (const participant of participants) {
      const durability = scenario.kind === 'push' ? await probe(participant.side, participant.workload) : null;
      const isSubject = participant === subject || subject === undefined;
      results.push(summarise(participant, durability, isSubject ? null : compare(scenario, subject, participant)));
    }
    const { name, title, clients, target } = scenario;
    return { name, title, clients, targetPerSecond: target.perSecond ?? null, sides: results };
  } finally {
    for (const { workload } of participants) await workload.dispose();
  }
}

async function measureRound(scenario: Scenario, context: BenchContext, participant: Participant): Promise<Round> {
  const { side, workload } = participant;
  const load = { port: side.port, clients: scenario.clients };
  await workload.replenish?.();
  if (workload.replenish === undefined) {
    await runLoad(workload, { ...load, durationSecondsMax: context.secondsPerRound * WARM_UP_SHARE });
  }
  if (scenario.atOnce !== true) await side.group.settle();
  const memory = startMemorySampler(side.group, MEMORY_INTERVAL_MS);
  const cpuBefore = side.group.cpuSeconds();
  const machineBefore = machineCpuSeconds();
  const { operations, seconds, latenciesMs, generatorCores } = await runLoad(workload, {
    ...load,
    durationSecondsMax: context.secondsPerRound,
  });
  const serverSeconds = side.group.cpuSeconds() - cpuBefore;
  const othersCores = (machineCpuSeconds() - machineBefore - serverSeconds) / seconds - generatorCores;
  const peak = memory.stop();
  await side.group.settle();
  if (operations === 0) throw new Error(`${scenario.name}: ${side.label} made no operation`);
  return {
    perSecond: operations / seconds,
    cpuMsPerOperation: ((side.group.cpuSeconds() - cpuBefore) * 1000) / operations,
    latenciesMs,
    generatorCores,
    othersCores: Math.max(0, othersCores),
    memory: peak,
  };
}

function summarise(participant: Participant, durability: string | null, comparison: Comparison | null): SideResult {
  const { rounds, side } = participant;
  const latencies = rounds.flatMap((round) => round.latenciesMs);
  return {
    side: side.label,
    operations: latencies.length,
    perSecond: median(rounds.map((round) => round.perSecond)),
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    cpuMsPerOperation: median(rounds.map((round) => round.cpuMsPerOperation)),
    memoryPeakBytes: Math.max(...rounds.map((round) => round.memory.serverBytes)),
    databaseMemoryPeakBytes: Math.max(...rounds.map((round) => round.memory.databaseBytes)),
    generatorCores: median(rounds.map((round) => round.generatorCores)),
    othersCores: median(rounds.map((round) => round.othersCores)),
    durability,
    comparison,
  };
}

function compare(scenario: Scenario, subject: Participant, other: Participant): Comparison {
  const pairs = other.rounds.flatMap((round, index) => {
    const own = subject.rounds[index];
    return own === undefined ? [] : [{ own, round }];
  });
  return {
    rateRatio: median(pairs.map(({ own, round }) => own.perSecond / round.perSecond)),
    cpuRatio: median(pairs.map(({ own, round }) => round.cpuMsPerOperation / own.cpuMsPerOperation)),
    targetRatio: subject.side.role === 'product' ? (scenario.target.ratios?.[other.side.label] ?? null) : null,
  };
}
