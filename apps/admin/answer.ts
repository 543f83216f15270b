/** The results of the commands of `strata-admin`. */
import type { AdminContext } from './context.ts';

/** Ends a command; the operator sees only the message, in one line. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

export interface Answer {
  /** The value printed with `--json`. */
  readonly value: unknown;
  /** The text printed without `--json`. */
  readonly text: string;
  /** Exit status; 0 when absent. */
  readonly status?: number;
}

/**
 * Turns a command's function into a commander action: it opens the context, runs the function and prints the answer.
 */
export type Act = <Options>(
  run: (context: AdminContext, options: Options) => Promise<Answer>,
) => (options: Options) => Promise<void>;

/** For commands that print their output themselves. */
export interface CommandOutput {
  readonly act: Act;
  readonly print: (answer: Answer) => void;
  readonly wantsJson: () => boolean;
  /** Who types the command, and where: `NAME@HOST`. */
  readonly operator: () => string;
}
