/** What a webhook may listen for (spec, Events). */

export const WEBHOOK_EVENT_KINDS = ['push', 'create', 'delete', 'ping'] as const;
export type WebhookEventKind = (typeof WEBHOOK_EVENT_KINDS)[number];
