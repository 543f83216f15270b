/** How a command of `strata-admin` ends. */
import type { AdminContext } from './context.ts';

/** An end that the operator is told of in one line. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

export interface Answer {
  /** The value printed with `--json`. */
  readonly value: unknown;
  /** What people read. */
  readonly text: string;
  /** Exit status; 0 when absent. */
  readonly status?: number;
}

/** Turns what a command does into its action. */
export type Act = <Options>(
  run: (context: AdminContext, options: Options) => Promise<Answer>,
) => (options: Options) => Promise<void>;

/** For commands that write more than an answer. */
export interface CommandOutput {
  readonly act: Act;
  readonly print: (answer: Answer) => void;
  readonly wantsJson: () => boolean;
}
