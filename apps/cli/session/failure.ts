/** What ends a command in order: its message, what to do next, and the exit status. */

/** 1: refused or failed. 2: used wrongly. 3: not signed in. */
export type FailureStatus = 1 | 2 | 3;

export class Failure extends Error {
  override readonly name = 'Failure';
  readonly status: FailureStatus;
  /** A sentence or command that helps; null if there is none. */
  readonly hint: string | null;

  constructor(status: FailureStatus, message: string, hint: string | null = null) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

/** Names an error of the operating system: ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** The command was given something that it cannot use. */
export function usageFailure(message: string, hint: string | null = null): Failure {
  return new Failure(2, message, hint);
}
