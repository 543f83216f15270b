/** Folds an account's events. */
import type { Decider, SnapshotCodec } from '../kernel/decider.ts';
import { type RepositoryId, type Timestamp, timestamp, uuid, type WebhookId } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import { PersistentMap } from '../kernel/persistent-map.ts';
import { vaultRef } from '../ports/vault.ts';
import { type AccountEvent, accountEventKinds } from './events.ts';
import { repositoryNameKey } from './names.ts';
import type { Plan } from './plans.ts';
import type { Account, OpenAccount, OwnedRepository, Webhook } from './state.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

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
        webhooks: new Map<WebhookId, Webhook>(),
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
    case 'WebhookCreated':
    case 'WebhookUrlChanged':
    case 'WebhookEventsChanged':
    case 'WebhookActivated':
    case 'WebhookDeactivated':
    case 'WebhookSecretRotated':
    case 'WebhookDeleted':
      return evolveWebhooks(open(state), event, at);
  }
}

type WebhookEvent = Extract<AccountEvent, { readonly data: { readonly webhook_id: string } }>;

function evolveWebhooks(account: OpenAccount, event: WebhookEvent, at: Timestamp): OpenAccount {
  const id = uuid<WebhookId>(event.data.webhook_id);
  const webhooks = new Map(account.webhooks);
  if (event.type === 'WebhookCreated') {
    const { url_ref: urlRef, secret_ref: secretRef, events, active } = event.data;
    const refs = { urlRef: vaultRef(urlRef), secretRef: vaultRef(secretRef), previousSecret: null };
    webhooks.set(id, { id, ...refs, events, active, createdAt: at, updatedAt: at });
    return { ...account, webhooks };
  }
  const webhook = webhooks.get(id);
  if (webhook === undefined) throw new TypeError(`${event.type} of a webhook that is not there`);
  if (event.type === 'WebhookDeleted') webhooks.delete(id);
  else webhooks.set(id, { ...webhook, ...webhookChange(webhook, event), updatedAt: at });
  return { ...account, webhooks };
}

function webhookChange(
  webhook: Webhook,
  event: Exclude<WebhookEvent, { type: 'WebhookCreated' | 'WebhookDeleted' }>,
): Partial<Webhook> {
  switch (event.type) {
    case 'WebhookUrlChanged': {
      const { url_ref: urlRef, secret_ref: secretRef } = event.data;
      return { urlRef: vaultRef(urlRef), secretRef: vaultRef(secretRef), previousSecret: null };
    }
    case 'WebhookEventsChanged':
      return { events: event.data.events };
    case 'WebhookActivated':
      return { active: true };
    case 'WebhookDeactivated':
      return { active: false };
    case 'WebhookSecretRotated': {
      const validUntil = timestamp(event.data.previous_valid_until);
      return { secretRef: vaultRef(event.data.secret_ref), previousSecret: { ref: webhook.secretRef, validUntil } };
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
  readonly webhooks: readonly {
    readonly id: string;
    readonly urlRef: string;
    readonly secretRef: string;
    readonly previousSecret: { readonly ref: string; readonly validUntil: string } | null;
    readonly events: readonly WebhookEventKind[];
    readonly active: boolean;
    readonly createdAt: string;
    readonly updatedAt: string;
  }[];
};

/** Only `write` below makes snapshots of this version. */
function parseSnapshot(snapshot: JsonObject): AccountSnapshot {
  return snapshot as AccountSnapshot;
}

const accountSnapshots: SnapshotCodec<Account> = {
  version: 2,
  write(state) {
    if (state.status !== 'open') return null;
    const repositories = [...state.repositories.entries()].map(
      ([id, r]) => [id, r.name, r.description, r.initialDefaultBranch, r.storageBucketId, r.createdAt] as const,
    );
    const { username, emailRef, passwordHashRef, plan, createdAt } = state;
    const webhooks = [...state.webhooks.values()].map((webhook) => ({ ...webhook }));
    return { username, emailRef, passwordHashRef, plan, createdAt, repositories, webhooks } satisfies AccountSnapshot;
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
      webhooks: new Map(stored.webhooks.map(storedWebhook).map((webhook) => [webhook.id, webhook])),
    };
  },
};

function storedWebhook(stored: AccountSnapshot['webhooks'][number]): Webhook {
  const { previousSecret: previous } = stored;
  return {
    ...stored,
    id: uuid(stored.id),
    urlRef: vaultRef(stored.urlRef),
    secretRef: vaultRef(stored.secretRef),
    previousSecret:
      previous === null ? null : { ref: vaultRef(previous.ref), validUntil: timestamp(previous.validUntil) },
    createdAt: timestamp(stored.createdAt),
    updatedAt: timestamp(stored.updatedAt),
  };
}

export const accounts: Decider<Account, AccountEvent> = {
  category: 'account',
  kinds: accountEventKinds,
  initial: { status: 'absent' },
  evolve: evolveAccount,
  snapshots: accountSnapshots,
  sizeBytes: (state) =>
    state.status === 'open'
      ? 1_000 + state.repositories.weight + 1_000 * state.webhooks.size
      : state.status === 'erased'
        ? 1_000 + state.repositories.weight
        : 100,
};
