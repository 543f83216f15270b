/**
 * Events of an account's list of repositories, on `account-<id>`: which exist, and their names. The refs and layers of
 * a repository are on its own stream (core/repository).
 */
import { type DomainEvent, type EventKinds, NEW_RECORD_V1, RECORD_V1 } from '../../kernel/decider.ts';

export type RepositoryCreated = DomainEvent<
  'RepositoryCreated',
  {
    readonly repository_id: string;
    readonly name: string;
    readonly description: string | null;
    /** Null: `master` until the first push or the owner chooses another. */
    readonly default_branch: string | null;
    /** Null: the platform's storage. It never changes. */
    readonly storage_bucket_id: string | null;
  }
>;
export type RepositoryDescribed = DomainEvent<
  'RepositoryDescribed',
  { readonly repository_id: string; readonly description: string | null }
>;
export type RepositoryRenamed = DomainEvent<
  'RepositoryRenamed',
  {
    readonly repository_id: string;
    readonly name: string;
    /** Leads to the repository from now on, until another repository takes it (docs/interface.md, Repositories). */
    readonly previous_name: string;
  }
>;
export type RepositoryDeleted = DomainEvent<
  'RepositoryDeleted',
  { readonly repository_id: string; readonly name: string }
>;
/**
 * A deleted repository belongs to the account again, perhaps under another name. `RepositoryReopened` on its own stream
 * follows. If the writer stops between the two, the repository is listed but closed, as after an interrupted deletion,
 * and is deleted again. The event holds all members of the list's entry, because the deletion removed them.
 */
export type RepositoryRestored = DomainEvent<
  'RepositoryRestored',
  RepositoryCreated['data'] & { readonly created_at: string }
>;

export type OwnedRepositoryEvent =
  | RepositoryCreated
  | RepositoryDescribed
  | RepositoryRenamed
  | RepositoryDeleted
  | RepositoryRestored;

export const ownedRepositoryEventKinds: EventKinds<OwnedRepositoryEvent> = {
  RepositoryCreated: RECORD_V1,
  RepositoryDescribed: RECORD_V1,
  RepositoryRenamed: NEW_RECORD_V1,
  RepositoryDeleted: RECORD_V1,
  RepositoryRestored: RECORD_V1,
};
