/**
 * What a scenario is, and what it is given.
 *
 * Must stay true: a scenario prepares each side by the same steps and leaves no repository behind.
 */
import type { CommitChain } from '../commit-chain.ts';
import type { Workload } from '../operation.ts';
import type { Project } from '../project.ts';
import type { HttpBackendVariant } from '../sides/http-backend.ts';
import type { Side } from '../sides/side.ts';

export interface BenchContext {
  readonly project: Project;
  /** Removed at the end; scenarios put clients' copies here. */
  readonly workFolder: string;
  readonly secondsPerRound: number;
  readonly rounds: number;
  /** Made once, when first asked for. */
  commitChain(): Promise<CommitChain>;
}

export interface PreparedWorkload extends Workload {
  /** Removes the repositories. */
  dispose(): Promise<void>;
}

/** What git-path.md asks of the product. */
export interface Target {
  /** The product's rate over the peer's, at least; by the label of the peer's variant. */
  readonly ratios?: Readonly<Record<string, number>>;
  /** The product's rate, at least. */
  readonly perSecond?: number;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** Connections, each with one operation under way. */
  readonly clients: number;
  readonly kind: 'read' | 'push' | 'rest';
  readonly target: Target;
  /** Of the peer, beside its default. */
  readonly variants?: readonly HttpBackendVariant[];
  /** Operations in one round, for scenarios whose every operation needs a fresh start. */
  readonly roundFactor?: number;
  prepare(context: BenchContext, side: Side): Promise<PreparedWorkload>;
}
