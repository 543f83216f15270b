/** Lists of repositories, read from a read model. An account may have any number of repositories. */
import type { AccountId, RepositoryId, Timestamp, Uuid } from '../kernel/ids.ts';
import type { Page, PageOf } from '../kernel/page.ts';
import type { LayerPlace } from './layer-stores.ts';

export interface RepositoryRow {
  readonly id: RepositoryId;
  readonly accountId: AccountId;
  readonly username: string;
  readonly name: string;
  readonly description: string | null;
  readonly defaultBranch: string;
  readonly storageBucketId: Uuid | null;
  readonly sizeBytes: number;
  readonly createdAt: Timestamp;
  readonly pushedAt: Timestamp | null;
}

export interface RepositoryLists {
  /** Returns the account's repositories that are not deleted, by name without case. `only` limits them to these ids. */
  repositories(account: AccountId, only: readonly RepositoryId[] | null, page: Page): Promise<PageOf<RepositoryRow>>;
  /** Returns those whose name or description holds the text, in any case. It is not empty. */
  repositoriesWith(account: AccountId, text: string, page: Page): Promise<PageOf<RepositoryRow>>;
}

export interface BucketsInUse {
  /** Returns the buckets of users that repositories are in, each once. */
  bucketsInUse(): Promise<readonly LayerPlace[]>;
}

export interface HalfDeletedRepositories {
  /** Returns repositories whose deletion was interrupted: they are closed, and their names are not yet released. */
  halfDeleted(): Promise<readonly { readonly account: AccountId; readonly repository: RepositoryId }[]>;
}

export interface RepositoryOwners {
  /** Returns the account of a repository that is not deleted; null if the read model does not know it. */
  ownerOf(repository: RepositoryId): Promise<AccountId | null>;
}
