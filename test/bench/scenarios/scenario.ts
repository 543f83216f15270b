/**
 * What a scenario is, and the context it gets.
 *
 * Invariants: a scenario prepares each side by the same steps and leaves no repository behind.
 */
import type { CommitChain } from '../commit-chain.ts';
import type { Workload } from '../operation.ts';
import type { Project } from '../project.ts';
import type { HttpBackendVariant } from '../sides/http-backend.ts';
import type { Side } from '../sides/side.ts';

export interface BenchContext {
  readonly project: Project;
  /** Removed at the end; scenarios put the clients' copies here. */
  readonly workFolder: string;
  readonly secondsPerRound: number;
  readonly rounds: number;
  /** Prepared at the first call and shared by all. */
  commitChain(): Promise<CommitChain>;
}

export interface PreparedWorkload extends Workload {
  /** Removes the repositories. */
  dispose(): Promise<void>;
}

/** The targets of the product (docs/git-path.md). */
export interface Target {
  /** The least ratio of the product's rate to the peer's, by the label of the peer's variant. */
  readonly ratios?: Readonly<Record<string, number>>;
  /** The least rate of the product. */
  readonly perSecond?: number;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** The number of connections, each with one operation at a time. The target is of this number. */
  readonly clients: number;
  /** The title at other numbers of clients, if it differs. Scenarios with the same one do the same work. */
  readonly work?: string;
  readonly kind: 'read' | 'push' | 'rest';
  readonly target: Target;
  /** Variants of the peer to measure besides its default. */
  readonly variants?: readonly HttpBackendVariant[];
  /** Multiplies the number of rounds, for scenarios that make only one operation in each, by one client. */
  readonly roundFactor?: number;
  /** The load of a round begins immediately after its preparation, while the server may still work for that. */
  readonly atOnce?: true;
  prepare(context: BenchContext, side: Side, clients: number): Promise<PreparedWorkload>;
}
