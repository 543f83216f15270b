/** How a command of `strata-admin` ends. */

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
