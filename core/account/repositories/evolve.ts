/** Folds the events of an account's list of repositories. */
import { type RepositoryId, type Timestamp, timestamp, uuid } from '../../kernel/ids.ts';
import type { JsonValue } from '../../kernel/json.ts';
import { PersistentMap } from '../../kernel/persistent-map.ts';
import type { Facet } from '../facet.ts';
import { repositoryNameKey } from '../names.ts';
import { type OwnedRepositoryEvent, ownedRepositoryEventKinds, type RepositoryCreated } from './events.ts';
import type { OwnedRepositories, OwnedRepository } from './state.ts';

function evolveRepositories(state: OwnedRepositories, event: OwnedRepositoryEvent, at: Timestamp): OwnedRepositories {
  const id = uuid<RepositoryId>(event.data.repository_id);
  switch (event.type) {
    case 'RepositoryCreated':
      return withRepository(state, listed(id, event.data, at));
    case 'RepositoryRestored':
      return withRepository(state, listed(id, event.data, timestamp(event.data.created_at)));
    case 'RepositoryDescribed': {
      const repository = state.repositories.get(id);
      if (repository === undefined) throw new TypeError('RepositoryDescribed of a repository that is not there');
      return withRepository(state, { ...repository, description: event.data.description });
    }
    case 'RepositoryDeleted':
      return {
        repositories: state.repositories.with([[id, undefined]]),
        repositoryNames: state.repositoryNames.with([[repositoryNameKey(event.data.name), undefined]]),
      };
  }
}

function listed(id: RepositoryId, data: RepositoryCreated['data'], createdAt: Timestamp): OwnedRepository {
  return {
    id,
    name: data.name,
    description: data.description,
    initialDefaultBranch: data.default_branch,
    storageBucketId: data.storage_bucket_id === null ? null : uuid(data.storage_bucket_id),
    createdAt,
  };
}

function withRepository(state: OwnedRepositories, repository: OwnedRepository): OwnedRepositories {
  return {
    repositories: state.repositories.with([[repository.id, repository]]),
    repositoryNames: state.repositoryNames.with([[repositoryNameKey(repository.name), repository.id]]),
  };
}

/** Maps ids to repositories. The weight of each is the memory it takes in bytes, its entry in the names included. */
function repositoriesFrom(owned: readonly OwnedRepository[]): OwnedRepositories {
  return {
    repositories: PersistentMap.from(
      owned.map((repository) => [repository.id, repository]),
      (_, { name, description }) => 600 + 4 * name.length + 2 * (description?.length ?? 0),
    ),
    repositoryNames: PersistentMap.from(owned.map(({ id, name }) => [repositoryNameKey(name), id])),
  };
}

/**
 * The stored form, which only this file writes and reads. A change of it raises the version of the snapshot. The rows
 * have no codec: it would be longer, and reading the rows of a large account would take an eighth more time.
 */
type RepositoriesSnapshot = {
  readonly repositories: readonly (readonly [string, string, string | null, string | null, string | null, string])[];
};

/** The cast is sound because only `snapshot.write` below makes these members. */
function parseSnapshot(stored: JsonValue): RepositoriesSnapshot {
  return stored as RepositoriesSnapshot;
}

export const ownedRepositories: Facet<OwnedRepositories, OwnedRepositoryEvent> = {
  kinds: ownedRepositoryEventKinds,
  initial: repositoriesFrom([]),
  evolve: evolveRepositories,
  snapshot: {
    write({ repositories }) {
      const owned = [...repositories.entries()].map(
        ([id, r]) => [id, r.name, r.description, r.initialDefaultBranch, r.storageBucketId, r.createdAt] as const,
      );
      return { repositories: owned } satisfies RepositoriesSnapshot;
    },
    read(stored) {
      return repositoriesFrom(
        parseSnapshot(stored).repositories.map(([id, name, description, initialDefaultBranch, bucket, createdAt]) => ({
          id: uuid<RepositoryId>(id),
          name,
          description,
          initialDefaultBranch,
          storageBucketId: bucket === null ? null : uuid(bucket),
          createdAt: timestamp(createdAt),
        })),
      );
    },
  },
  sizeBytes: ({ repositories }) => repositories.weight,
};
