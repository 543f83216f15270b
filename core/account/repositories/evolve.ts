/** Folds the events of an account's list of repositories. */
import { type RepositoryId, type Timestamp, timestamp, uuid } from '../../kernel/ids.ts';
import type { JsonValue } from '../../kernel/json.ts';
import { PersistentMap } from '../../kernel/persistent-map.ts';
import type { Facet } from '../facet.ts';
import { repositoryNameKey } from '../names.ts';
import {
  type OwnedRepositoryEvent,
  ownedRepositoryEventKinds,
  type RepositoryCreated,
  type RepositoryRenamed,
} from './events.ts';
import { DELETED_FORMER_NAMES_MAX, REPOSITORY_FORMER_NAMES_MAX } from './limits.ts';
import type { DeletedFormerNames, OwnedRepositories, OwnedRepository } from './state.ts';

function evolveRepositories(state: OwnedRepositories, event: OwnedRepositoryEvent, at: Timestamp): OwnedRepositories {
  const id = uuid<RepositoryId>(event.data.repository_id);
  switch (event.type) {
    case 'RepositoryCreated':
      return withRepository(withoutFormerName(state, event.data.name), listed(id, event.data, at));
    case 'RepositoryRestored': {
      const freed = withoutFormerName(state, event.data.name);
      const formerNames = freed.deletedFormerNames.find((deleted) => deleted.id === id)?.formerNames ?? [];
      return withRepository(
        { ...freed, deletedFormerNames: freed.deletedFormerNames.filter((deleted) => deleted.id !== id) },
        { ...listed(id, event.data, timestamp(event.data.created_at)), formerNames },
      );
    }
    case 'RepositoryDescribed': {
      const repository = state.repositories.get(id);
      if (repository === undefined) throw new TypeError('RepositoryDescribed of a repository that is not there');
      return withRepository(state, { ...repository, description: event.data.description });
    }
    case 'RepositoryRenamed':
      return renamed(state, id, event.data);
    case 'RepositoryDeleted': {
      const formerNames = state.repositories.get(id)?.formerNames ?? [];
      const left = {
        ...state,
        repositories: state.repositories.with([[id, undefined]]),
        repositoryNames: state.repositoryNames.with([[repositoryNameKey(event.data.name), undefined]]),
      };
      return formerNames.length === 0 ? left : withDeleted(left, { id, formerNames });
    }
  }
}

function renamed(
  state: OwnedRepositories,
  id: RepositoryId,
  { name, previous_name: previous }: RepositoryRenamed['data'],
): OwnedRepositories {
  const freed = withoutFormerName(state, name);
  const repository = freed.repositories.get(id);
  if (repository === undefined) throw new TypeError('RepositoryRenamed of a repository that is not there');
  // With another case only, it is the same name.
  if (repositoryNameKey(previous) === repositoryNameKey(name)) return withRepository(freed, { ...repository, name });
  const former = [previous, ...repository.formerNames];
  const forgotten = former.slice(REPOSITORY_FORMER_NAMES_MAX);
  const repositoryNames = freed.repositoryNames.with([[repositoryNameKey(previous), undefined]]);
  const formerNames = freed.formerNames.with([
    [repositoryNameKey(previous), id],
    ...forgotten.map((old) => [repositoryNameKey(old), undefined] as const),
  ]);
  return withRepository(
    { ...freed, repositoryNames, formerNames },
    { ...repository, name, formerNames: former.slice(0, REPOSITORY_FORMER_NAMES_MAX) },
  );
}

/** Keeps what led to a deleted repository until that is undeleted, or deletions after it are too many. */
function withDeleted(state: OwnedRepositories, deleted: DeletedFormerNames): OwnedRepositories {
  const all = [deleted, ...state.deletedFormerNames];
  const forgotten = all.slice(DELETED_FORMER_NAMES_MAX).flatMap(({ formerNames }) => formerNames);
  return {
    ...state,
    formerNames: state.formerNames.with(forgotten.map((name) => [repositoryNameKey(name), undefined])),
    deletedFormerNames: all.slice(0, DELETED_FORMER_NAMES_MAX),
  };
}

/** A name that is taken leads to no repository that had it before, also if that is undeleted. */
function withoutFormerName(state: OwnedRepositories, name: string): OwnedRepositories {
  const key = repositoryNameKey(name);
  const id = state.formerNames.get(key);
  if (id === undefined) return state;
  const without = <Led extends DeletedFormerNames>(led: Led): Led => ({
    ...led,
    formerNames: led.formerNames.filter((former) => repositoryNameKey(former) !== key),
  });
  const repository = state.repositories.get(id);
  const formerNames = state.formerNames.with([[key, undefined]]);
  if (repository !== undefined) {
    return { ...state, formerNames, repositories: state.repositories.with([[id, without(repository)]]) };
  }
  const deleted = state.deletedFormerNames.map((one) => (one.id === id ? without(one) : one));
  return { ...state, formerNames, deletedFormerNames: deleted.filter((one) => one.formerNames.length > 0) };
}

function listed(id: RepositoryId, data: RepositoryCreated['data'], createdAt: Timestamp): OwnedRepository {
  return {
    id,
    name: data.name,
    description: data.description,
    initialDefaultBranch: data.default_branch,
    storageBucketId: data.storage_bucket_id === null ? null : uuid(data.storage_bucket_id),
    createdAt,
    formerNames: [],
  };
}

function withRepository(state: OwnedRepositories, repository: OwnedRepository): OwnedRepositories {
  return {
    ...state,
    repositories: state.repositories.with([[repository.id, repository]]),
    repositoryNames: state.repositoryNames.with([[repositoryNameKey(repository.name), repository.id]]),
  };
}

/** Maps ids to repositories. The weight of each is the memory it takes in bytes, its entries in the names included. */
function repositoriesFrom(
  owned: readonly OwnedRepository[],
  deletedFormerNames: readonly DeletedFormerNames[],
): OwnedRepositories {
  return {
    repositories: PersistentMap.from(
      owned.map((repository) => [repository.id, repository]),
      (_, { name, description, formerNames }) =>
        600 + 4 * name.length + 2 * (description?.length ?? 0) + formerNames.reduce(formerNameWeight, 0),
    ),
    repositoryNames: PersistentMap.from(owned.map(({ id, name }) => [repositoryNameKey(name), id])),
    formerNames: PersistentMap.from(
      [...owned, ...deletedFormerNames].flatMap(({ id, formerNames }) =>
        formerNames.map((name) => [repositoryNameKey(name), id] as const),
      ),
    ),
    deletedFormerNames,
  };
}

function formerNameWeight(sum: number, name: string): number {
  return sum + 200 + 4 * name.length;
}

/**
 * The stored form, which only this file writes and reads. A change of it raises the version of the snapshot. The rows
 * have no codec: it would be longer, and reading the rows of a large account would take an eighth more time.
 */
type RepositoriesSnapshot = {
  readonly repositories: readonly (readonly [
    id: string,
    name: string,
    description: string | null,
    initialDefaultBranch: string | null,
    bucket: string | null,
    createdAt: string,
    formerNames: readonly string[],
  ])[];
  readonly deletedFormerNames: readonly (readonly [id: string, formerNames: readonly string[]])[];
};

/** The cast is sound because only `snapshot.write` below makes these members. */
function parseSnapshot(stored: JsonValue): RepositoriesSnapshot {
  return stored as RepositoriesSnapshot;
}

export const ownedRepositories: Facet<OwnedRepositories, OwnedRepositoryEvent> = {
  kinds: ownedRepositoryEventKinds,
  initial: repositoriesFrom([], []),
  evolve: evolveRepositories,
  snapshot: {
    write({ repositories, deletedFormerNames }) {
      const owned = [...repositories.entries()].map(
        ([id, r]) =>
          [id, r.name, r.description, r.initialDefaultBranch, r.storageBucketId, r.createdAt, r.formerNames] as const,
      );
      const deleted = deletedFormerNames.map(({ id, formerNames }) => [id, formerNames] as const);
      return { repositories: owned, deletedFormerNames: deleted } satisfies RepositoriesSnapshot;
    },
    read(stored) {
      const { repositories, deletedFormerNames } = parseSnapshot(stored);
      return repositoriesFrom(
        repositories.map(([id, name, description, initialDefaultBranch, bucket, createdAt, formerNames]) => ({
          id: uuid<RepositoryId>(id),
          name,
          description,
          initialDefaultBranch,
          storageBucketId: bucket === null ? null : uuid(bucket),
          createdAt: timestamp(createdAt),
          formerNames,
        })),
        deletedFormerNames.map(([id, formerNames]) => ({ id: uuid<RepositoryId>(id), formerNames })),
      );
    },
  },
  sizeBytes: ({ repositories, deletedFormerNames }) =>
    deletedFormerNames.reduce((sum, { formerNames }) => formerNames.reduce(formerNameWeight, sum), repositories.weight),
};
