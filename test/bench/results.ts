/**
 * The results of the bench as data: the table and `--json` show the same values.
 *
 * Invariants: names end with their units; a value that was not measured is null, never 0.
 */

/** One side in one scenario, over all rounds. */
export interface SideResult {
  readonly side: string;
  readonly operations: number;
  /** The median of the rounds. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of all the server's processes, with work deferred until after the answer; the median of the rounds. */
  readonly cpuMsPerOperation: number;
  readonly memoryPeakBytes: number;
  readonly databaseMemoryPeakBytes: number;
  /** The cores that the generator used; near 1 the generator was the limit, not the server. */
  readonly generatorCores: number;
  /** The cores that everything else on the machine used: more than a little makes the figures worthless. */
  readonly othersCores: number;
  readonly durability: string | null;
  /** The subject compared with this side; null for the subject itself and when nothing was measured. */
  readonly comparison: Comparison | null;
}

export interface Comparison {
  /** The subject's rate divided by this side's: the median of the ratios of each round. */
  readonly rateRatio: number;
  /** This side's CPU time per operation divided by the subject's. */
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

/** A real git client, alone, against each side and against a server with canned answers. */
export interface ClientResult {
  readonly name: string;
  readonly title: string;
  readonly runs: number;
  readonly floorMs: number;
  readonly sides: readonly { readonly side: string; readonly medianMs: number }[];
  /** The part of the gap between the peer and the floor that the subject closes, 0 to 1; null without both sides. */
  readonly share: number | null;
  readonly targetShare: number;
}

/** One change of a file by one client, from its first request to its last answer. */
export interface ChangeResult {
  readonly tree: string;
  readonly way: string;
  readonly side: string;
  readonly runs: number;
  /** HTTP requests of one change, without those that only ask for credentials. */
  readonly requests: number;
  readonly medianMs: number;
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
  /** `peakBytes` by program name. */
  readonly peakProgramBytes: Readonly<Record<string, number>>;
  readonly afterBytes: number;
}

/** A scenario that could not be measured: a server answered wrongly, or the scenario could not be prepared. */
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
  readonly changes: readonly ChangeResult[];
  readonly clients: readonly ClientResult[];
  readonly memory: readonly MemoryResult[];
  readonly faults: readonly Fault[];
}
