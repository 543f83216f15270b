/** The kinds of events that a webhook may subscribe to (docs/interface.md, Webhooks). */

export const WEBHOOK_EVENT_KINDS = ['push', 'create', 'delete', 'ping'] as const;
export type WebhookEventKind = (typeof WEBHOOK_EVENT_KINDS)[number];
