/** What can be asked of an account. */
import type { RepositoryId, Timestamp, Uuid, WebhookId } from '../kernel/ids.ts';
import type { VaultRef } from '../ports/vault.ts';
import type { Plan, PlanQuotas } from './plans.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

export type AccountCommand =
  | {
      readonly type: 'CreateAccount';
      readonly username: string;
      readonly emailRef: VaultRef;
      readonly passwordHashRef: VaultRef;
      readonly plan: Plan;
    }
  | { readonly type: 'AbandonAccount' }
  | { readonly type: 'ChangePlan'; readonly plan: Plan }
  | { readonly type: 'ChangePassword'; readonly passwordHashRef: VaultRef }
  | { readonly type: 'EraseAccount' }
  | {
      readonly type: 'CreateRepository';
      readonly id: RepositoryId;
      readonly name: string;
      readonly description: string | null;
      readonly defaultBranch: string | null;
      readonly storageBucketId: Uuid | null;
      readonly quotas: PlanQuotas;
    }
  | { readonly type: 'DescribeRepository'; readonly id: RepositoryId; readonly description: string | null }
  | { readonly type: 'DeleteRepository'; readonly id: RepositoryId }
  | WebhookCommand;

/** A URL that the rules of outgoing requests allow, and the secret of its receiver, as the vault names them. */
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
