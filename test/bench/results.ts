/**
 * What the bench found, as data: the table and `--json` show the same values.
 *
 * Must stay true: names carry their units; a value that was not measured is null, never 0.
 */

/** One side in one scenario, over all rounds. */
export interface SideResult {
  readonly side: string;
  readonly operations: number;
  /** Median of the rounds. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** All processes of the server, with what it put off until after the answer; median of the rounds. */
  readonly cpuMsPerOperation: number;
  readonly memoryPeakBytes: number;
  readonly databaseMemoryPeakBytes: number;
  /** Of the generator; near 1 the figure is the generator's, not the server's. */
  readonly generatorCores: number;
  /** Of everything else on the machine: more than a little makes the figures worthless. */
  readonly othersCores: number;
  readonly durability: string | null;
  /** The subject compared with this side; null on the subject's own line and when it was not measured. */
  readonly comparison: Comparison | null;
}

export interface Comparison {
  /** The subject's rate over this side's: medians of the ratios of each round. */
  readonly rateRatio: number;
  /** This side's CPU time an operation over the subject's. */
  readonly cpuRatio: number;
  readonly targetRatio: number | null;
}

export interface ScenarioResult {
  readonly name: string;
  readonly title: string;
  readonly clients: number;
  readonly targetPerSecond: number | null;
  /** The subject first. */
  readonly sides: readonly SideResult[];
}

/** A real git client, alone, against each side and against a server of canned answers. */
export interface ClientResult {
  readonly name: string;
  readonly title: string;
  readonly runs: number;
  readonly floorMs: number;
  readonly sides: readonly { readonly side: string; readonly medianMs: number }[];
  /** How much of the gap between the peer and the floor the subject closes, 0 to 1; null without both. */
  readonly share: number | null;
  readonly targetShare: number;
}

export interface MemoryResult {
  readonly side: string;
  readonly pushBytes: number;
  readonly clones: number;
  readonly seconds: number;
  readonly idleBytes: number;
  readonly peakBytes: number;
  readonly peakAnonymousBytes: number;
  readonly databasePeakBytes: number;
  /** `peakBytes` by the name of the program. */
  readonly peakProgramBytes: Readonly<Record<string, number>>;
  readonly afterBytes: number;
}

/** A scenario that could not be measured: a server answered wrongly, or the scenario could not be set up. */
export interface Fault {
  readonly name: string;
  readonly message: string;
}

export interface BenchResult {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  readonly repository: string;
  readonly accounting: string;
  readonly secondsPerRound: number;
  readonly rounds: number;
  readonly scenarios: readonly ScenarioResult[];
  readonly clients: readonly ClientResult[];
  readonly memory: readonly MemoryResult[];
  readonly faults: readonly Fault[];
}
