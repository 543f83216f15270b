/** The state of an account's list of repositories, folded from the account's stream. */
import type { RepositoryId, StorageBucketId, Timestamp } from '../../kernel/ids.ts';
import type { PersistentMap } from '../../kernel/persistent-map.ts';

export interface OwnedRepository {
  readonly id: RepositoryId;
  readonly name: string;
  readonly description: string | null;
  /** The branch its creator named. A later choice of a push or its owner is on the repository's stream. */
  readonly initialDefaultBranch: string | null;
  readonly storageBucketId: StorageBucketId | null;
  readonly createdAt: Timestamp;
  /** Names that it had before and that still lead to it, the newest first. */
  readonly formerNames: readonly string[];
}

export interface OwnedRepositories {
  readonly repositories: PersistentMap<RepositoryId, OwnedRepository>;
  /** Keyed by `repositoryNameKey`. */
  readonly repositoryNames: PersistentMap<string, RepositoryId>;
  /**
   * The former names of all repositories, and of those in `deletedFormerNames`, keyed by `repositoryNameKey`. No key is
   * in `repositoryNames` as well.
   */
  readonly formerNames: PersistentMap<string, RepositoryId>;
  /** What led to deleted repositories and leads to them again when they are undeleted; the newest deletion first. */
  readonly deletedFormerNames: readonly DeletedFormerNames[];
}

export type DeletedFormerNames = Pick<OwnedRepository, 'id' | 'formerNames'>;
