/** The state of an account's webhooks, folded from the account's stream. */
import type { RepositorySelection } from '../../access-token/repository-selection.ts';
import type { Timestamp, WebhookId } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';

export interface Webhook {
  readonly id: WebhookId;
  /** Vault references (docs/architecture.md, invariant 5). */
  readonly urlRef: VaultRef;
  readonly secretRef: VaultRef;
  /** The secret before the last rotation. It signs too until `validUntil`. Null if the URL changed since. */
  readonly previousSecret: { readonly ref: VaultRef; readonly validUntil: Timestamp } | null;
  readonly events: readonly WebhookEventKind[];
  /** The repositories whose events are sent to the webhook. */
  readonly repositories: RepositorySelection;
  readonly active: boolean;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

export interface AccountWebhooks {
  /** In the order of their creation; at most `WEBHOOKS_MAX`. */
  readonly webhooks: ReadonlyMap<WebhookId, Webhook>;
}
