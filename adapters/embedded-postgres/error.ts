/** Why the embedded PostgreSQL does not start. `code` is stable; the message tells the operator what to do. */
import { CodedError } from '../../core/kernel/coded-error.ts';

export type EmbeddedPostgresErrorCode =
  /** npm installed no PostgreSQL for this platform, or its libraries cannot be linked. */
  | 'binaries-missing'
  /** The user that PostgreSQL runs as cannot enter a folder. The message names the folder. */
  | 'folder-barred'
  /** Another major version of PostgreSQL made the cluster. */
  | 'version-mismatch'
  /** The cluster belongs to another user, its password file is gone, or PostgreSQL refuses the password. */
  | 'cluster-unusable'
  /** PostgreSQL did not start, and the message holds the end of its log; or an orphan of it did not stop. */
  | 'start-failed';

export class EmbeddedPostgresError extends CodedError<EmbeddedPostgresErrorCode> {
  override readonly name = 'EmbeddedPostgresError';
}

/** Returns the code of a failed system call (`ENOENT`), or another code that the error has as text; else null. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

/** For what reads a file that may not be there: null for `ENOENT`; throws any other error. */
export function absentAsNull(error: unknown): null {
  if (systemCode(error) === 'ENOENT') return null;
  throw error;
}
