/** Folds an account's events. */
import type { Decider, SnapshotCodec } from '../kernel/decider.ts';
import { type RepositoryId, type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import { PersistentMap } from '../kernel/persistent-map.ts';
import { vaultRef } from '../ports/vault.ts';
import { type AccountEvent, accountEventKinds } from './events.ts';
import { repositoryNameKey } from './names.ts';
import type { Plan } from './plans.ts';
import type { Account, OpenAccount, OwnedRepository } from './state.ts';

function evolveAccount(state: Account, event: AccountEvent, at: Timestamp): Account {
  switch (event.type) {
    case 'AccountCreated':
      return {
        status: 'open',
        username: event.data.username,
        emailRef: vaultRef(event.data.email_ref),
        passwordHashRef: vaultRef(event.data.password_hash_ref),
        plan: event.data.plan,
        createdAt: at,
        repositories: ownedRepositories([]),
        repositoryNames: PersistentMap.from<string, RepositoryId>([]),
      };
    case 'Abandoned':
      return { status: 'abandoned' };
    case 'PlanChanged':
      return { ...open(state), plan: event.data.plan };
    case 'PasswordChanged':
      return { ...open(state), passwordHashRef: vaultRef(event.data.password_hash_ref) };
    case 'AccountErased': {
      const { username, emailRef, repositories } = open(state);
      return { status: 'erased', username, emailRef, repositories };
    }
    case 'RepositoryCreated': {
      const { data } = event;
      return withRepository(open(state), {
        id: uuid(data.repository_id),
        name: data.name,
        description: data.description,
        initialDefaultBranch: data.default_branch,
        storageBucketId: data.storage_bucket_id === null ? null : uuid(data.storage_bucket_id),
        createdAt: at,
      });
    }
    case 'RepositoryDescribed': {
      const account = open(state);
      const repository = account.repositories.get(uuid(event.data.repository_id));
      if (repository === undefined) throw new TypeError('RepositoryDescribed of a repository that is not there');
      return withRepository(account, { ...repository, description: event.data.description });
    }
    case 'RepositoryDeleted': {
      const gone = [[uuid<RepositoryId>(event.data.repository_id), undefined]] as const;
      if (state.status === 'erased') return { ...state, repositories: state.repositories.with(gone) };
      const account = open(state);
      return {
        ...account,
        repositories: account.repositories.with(gone),
        repositoryNames: account.repositoryNames.with([[repositoryNameKey(event.data.name), undefined]]),
      };
    }
  }
}

function open(state: Account): OpenAccount {
  if (state.status !== 'open') throw new TypeError(`An event for an account that is ${state.status}`);
  return state;
}

/** By id, each weighing the bytes of memory it takes, with its place among the names. */
function ownedRepositories(owned: readonly OwnedRepository[]): OpenAccount['repositories'] {
  return PersistentMap.from(
    owned.map((repository) => [repository.id, repository]),
    (_, { name, description }) => 600 + 4 * name.length + 2 * (description?.length ?? 0),
  );
}

function withRepository(account: OpenAccount, repository: OwnedRepository): OpenAccount {
  return {
    ...account,
    repositories: account.repositories.with([[repository.id, repository]]),
    repositoryNames: account.repositoryNames.with([[repositoryNameKey(repository.name), repository.id]]),
  };
}

/** The stored form; written and read only here. */
type AccountSnapshot = {
  readonly username: string;
  readonly emailRef: string;
  readonly passwordHashRef: string;
  readonly plan: Plan;
  readonly createdAt: string;
  readonly repositories: readonly (readonly [string, string, string | null, string | null, string | null, string])[];
};

/** Only `write` below makes snapshots of this version. */
function parseSnapshot(snapshot: JsonObject): AccountSnapshot {
  return snapshot as AccountSnapshot;
}

const accountSnapshots: SnapshotCodec<Account> = {
  version: 1,
  write(state) {
    if (state.status !== 'open') return null;
    const repositories = [...state.repositories.entries()].map(
      ([id, r]) => [id, r.name, r.description, r.initialDefaultBranch, r.storageBucketId, r.createdAt] as const,
    );
    const { username, emailRef, passwordHashRef, plan, createdAt } = state;
    return { username, emailRef, passwordHashRef, plan, createdAt, repositories } satisfies AccountSnapshot;
  },
  read(snapshot) {
    const stored = parseSnapshot(snapshot);
    const owned = stored.repositories.map(([id, name, description, initialDefaultBranch, bucket, createdAt]) => ({
      id: uuid<RepositoryId>(id),
      name,
      description,
      initialDefaultBranch,
      storageBucketId: bucket === null ? null : uuid(bucket),
      createdAt: timestamp(createdAt),
    }));
    return {
      status: 'open',
      username: stored.username,
      emailRef: vaultRef(stored.emailRef),
      passwordHashRef: vaultRef(stored.passwordHashRef),
      plan: stored.plan,
      createdAt: timestamp(stored.createdAt),
      repositories: ownedRepositories(owned),
      repositoryNames: PersistentMap.from(owned.map((r) => [repositoryNameKey(r.name), r.id])),
    };
  },
};

export const accounts: Decider<Account, AccountEvent> = {
  category: 'account',
  kinds: accountEventKinds,
  initial: { status: 'absent' },
  evolve: evolveAccount,
  snapshots: accountSnapshots,
  sizeBytes: (state) =>
    state.status === 'open' || state.status === 'erased' ? 1_000 + state.repositories.weight : 100,
};
