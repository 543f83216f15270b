/** Why the embedded PostgreSQL does not start; `code` is stable, the message tells the operator the way out. */

export type EmbeddedPostgresErrorCode =
  /** No PostgreSQL for this platform is installed, or its libraries cannot be linked. */
  | 'binaries-missing'
  /** The user that PostgreSQL runs as cannot enter a folder; the message names it. */
  | 'folder-barred'
  /** The cluster was made by another major version. */
  | 'version-mismatch'
  /** The cluster belongs to another user, or its password file is gone. */
  | 'cluster-unusable'
  /** PostgreSQL did not start or an orphan of it did not stop; the message holds the end of its log. */
  | 'start-failed';

export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  readonly code: EmbeddedPostgresErrorCode;
  constructor(code: EmbeddedPostgresErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** The code of a failed system call (`ENOENT`), or null for any other error. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
