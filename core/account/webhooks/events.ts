/** Events of an account's webhooks, on `account-<id>`. */
import { type DomainEvent, type EventKind, type EventKinds, RECORD_V1 } from '../../kernel/decider.ts';
import type { Scope } from '../../kernel/grants.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';

export type WebhookCreated = DomainEvent<
  'WebhookCreated',
  {
    readonly webhook_id: string;
    /** Vault references (docs/architecture.md, invariant 5). The URL too may hold a secret, of its receiver. */
    readonly url_ref: string;
    readonly secret_ref: string;
    readonly events: readonly WebhookEventKind[];
    readonly active: boolean;
    /** The webhook is notified of the repositories that its creator's token selected then, whatever becomes of it. */
    readonly scope: Scope;
    readonly repository_ids: readonly string[];
  }
>;
/** A new URL has a new secret: its receiver never gets a signature made with an old one. */
export type WebhookUrlChanged = DomainEvent<
  'WebhookUrlChanged',
  { readonly webhook_id: string; readonly url_ref: string; readonly secret_ref: string }
>;
export type WebhookEventsChanged = DomainEvent<
  'WebhookEventsChanged',
  { readonly webhook_id: string; readonly events: readonly WebhookEventKind[] }
>;
export type WebhookActivated = DomainEvent<'WebhookActivated', { readonly webhook_id: string }>;
export type WebhookDeactivated = DomainEvent<'WebhookDeactivated', { readonly webhook_id: string }>;
export type WebhookSecretRotated = DomainEvent<
  'WebhookSecretRotated',
  {
    readonly webhook_id: string;
    readonly secret_ref: string;
    /** RFC 3339. Until then deliveries are signed with the previous secret too, but not with any older one. */
    readonly previous_valid_until: string;
  }
>;
export type WebhookDeleted = DomainEvent<'WebhookDeleted', { readonly webhook_id: string }>;

export type WebhookEvent =
  | WebhookCreated
  | WebhookUrlChanged
  | WebhookEventsChanged
  | WebhookActivated
  | WebhookDeactivated
  | WebhookSecretRotated
  | WebhookDeleted;

/** In version 1 every webhook was notified of every repository. */
const WEBHOOK_CREATED: EventKind = {
  version: 2,
  record: true,
  upcasters: [(data) => ({ ...data, scope: 'ALL_REPO', repository_ids: [] })],
};

export const webhookEventKinds: EventKinds<WebhookEvent> = {
  WebhookCreated: WEBHOOK_CREATED,
  WebhookUrlChanged: RECORD_V1,
  WebhookEventsChanged: RECORD_V1,
  WebhookActivated: RECORD_V1,
  WebhookDeactivated: RECORD_V1,
  WebhookSecretRotated: RECORD_V1,
  WebhookDeleted: RECORD_V1,
};
