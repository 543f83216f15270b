/**
 * The repositories whose manifest is to be written: one row for each, from a change until its manifest is stored.
 *
 * Invariants: rows are operational. The policy that adds them passes a change of the log only after its row is
 * there. A row that is asked for while its manifest is being written stays.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';

export type ManifestStep = 'write';

export interface WantedManifest {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  readonly dueAt: Timestamp;
}

export interface ManifestWrite {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  /** How often in a row the store failed. */
  readonly failures: number;
}

export interface ManifestWrites {
  /** Adds rows, or makes those that are there due earlier. No repository is named twice. */
  want(wanted: readonly WantedManifest[]): Promise<void>;
  /** Resolves null for a row that was removed. */
  find(repository: RepositoryId): Promise<ManifestWrite | null>;
  /**
   * Removes the row, or keeps it until `nextAt`. If somebody asked for it since its revision, it is due at `againAt`.
   */
  done(
    repository: RepositoryId,
    revision: number,
    next: { readonly nextAt: Timestamp | null; readonly againAt: Timestamp },
  ): Promise<void>;
  /** Makes the row due later, after the store failed. */
  failed(repository: RepositoryId, dueAt: Timestamp): Promise<void>;
}

/** The rows cannot be reached. Every call may be repeated. */
export class ManifestWritesError extends CodedError<'manifest-writes-unavailable'> {
  override readonly name = 'ManifestWritesError';
}
