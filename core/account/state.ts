/** An account as its stream says. */
import type { RepositoryId, Timestamp, Uuid, WebhookId } from '../kernel/ids.ts';
import type { PersistentMap } from '../kernel/persistent-map.ts';
import type { VaultRef } from '../ports/vault.ts';
import type { Plan } from './plans.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

export interface OwnedRepository {
  readonly id: RepositoryId;
  readonly name: string;
  readonly description: string | null;
  /** The branch its creator named; what a push or its owner chose later stands in the repository's stream. */
  readonly initialDefaultBranch: string | null;
  readonly storageBucketId: Uuid | null;
  readonly createdAt: Timestamp;
}

export interface Webhook {
  readonly id: WebhookId;
  /** Vault references (invariant 5). */
  readonly urlRef: VaultRef;
  readonly secretRef: VaultRef;
  /** The secret before the last rotation, unless the URL changed since; signs too until then. */
  readonly previousSecret: { readonly ref: VaultRef; readonly validUntil: Timestamp } | null;
  readonly events: readonly WebhookEventKind[];
  readonly active: boolean;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

export interface OpenAccount {
  readonly status: 'open';
  readonly username: string;
  readonly emailRef: VaultRef;
  readonly passwordHashRef: VaultRef;
  readonly plan: Plan;
  readonly createdAt: Timestamp;
  readonly repositories: PersistentMap<RepositoryId, OwnedRepository>;
  /** By `repositoryNameKey`. */
  readonly repositoryNames: PersistentMap<string, RepositoryId>;
  /** In the order of their creation; few. */
  readonly webhooks: ReadonlyMap<WebhookId, Webhook>;
}

/** Gone for everybody; what is left is what its erasure still has to do. */
export interface ErasedAccount {
  readonly status: 'erased';
  /** Stays taken, as the pseudonym that the log knows the account by. */
  readonly username: string;
  /** The key to the claim of the address, as long as the vault can read it. */
  readonly emailRef: VaultRef;
  /** Not deleted yet. */
  readonly repositories: OpenAccount['repositories'];
}

export type Account = { readonly status: 'absent' } | { readonly status: 'abandoned' } | OpenAccount | ErasedAccount;
