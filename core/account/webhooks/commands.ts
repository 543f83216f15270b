/** The commands of an account's webhooks. */
import type { Timestamp, WebhookId } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';

/** Vault references of a URL, which the rules of outgoing requests allow, and of its receiver's secret. */
export interface WebhookTarget {
  readonly urlRef: VaultRef;
  readonly secretRef: VaultRef;
}

export type WebhookCommand =
  | {
      readonly type: 'CreateWebhook';
      readonly id: WebhookId;
      readonly target: WebhookTarget;
      readonly events: readonly WebhookEventKind[];
      readonly active: boolean;
    }
  | {
      readonly type: 'ChangeWebhook';
      readonly id: WebhookId;
      readonly target?: WebhookTarget;
      readonly events?: readonly WebhookEventKind[];
      readonly active?: boolean;
    }
  | {
      readonly type: 'RotateWebhookSecret';
      readonly id: WebhookId;
      readonly secretRef: VaultRef;
      readonly previousValidUntil: Timestamp;
    }
  | { readonly type: 'DeleteWebhook'; readonly id: WebhookId };
