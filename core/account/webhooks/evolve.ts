/** Folds the events of an account's webhooks. */
import { selectedRepositories } from '../../access-token/repository-selection.ts';
import { byId, flag, list, merged, nullable, object, parsed, time, word } from '../../kernel/codec.ts';
import { type RepositoryId, type Timestamp, timestamp, uuid, type WebhookId } from '../../kernel/ids.ts';
import { vaultRef } from '../../kernel/vault-ref.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';
import type { Facet } from '../facet.ts';
import { type WebhookCreated, type WebhookEvent, webhookEventKinds } from './events.ts';
import type { AccountWebhooks, Webhook } from './state.ts';

function evolveWebhooks(state: AccountWebhooks, event: WebhookEvent, at: Timestamp): AccountWebhooks {
  const id = uuid<WebhookId>(event.data.webhook_id);
  const webhooks = new Map(state.webhooks);
  if (event.type === 'WebhookCreated') {
    webhooks.set(id, createdWebhook(id, event, at));
    return { webhooks };
  }
  const webhook = webhooks.get(id);
  if (webhook === undefined) throw new TypeError(`${event.type} of a webhook that is not there`);
  if (event.type === 'WebhookDeleted') webhooks.delete(id);
  else webhooks.set(id, { ...webhook, ...webhookChange(webhook, event), updatedAt: at });
  return { webhooks };
}

function createdWebhook(id: WebhookId, { data }: WebhookCreated, at: Timestamp): Webhook {
  return {
    id,
    urlRef: vaultRef(data.url_ref),
    secretRef: vaultRef(data.secret_ref),
    previousSecret: null,
    events: data.events,
    repositories: { scope: data.scope, repositoryIds: data.repository_ids.map((one) => uuid<RepositoryId>(one)) },
    active: data.active,
    createdAt: at,
    updatedAt: at,
  };
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

const webhook = merged(
  object<Omit<Webhook, 'repositories'>>({
    id: parsed(uuid<WebhookId>),
    urlRef: parsed(vaultRef),
    secretRef: parsed(vaultRef),
    previousSecret: nullable(object({ ref: parsed(vaultRef), validUntil: time })),
    events: list(word<WebhookEventKind>()),
    active: flag,
    createdAt: time,
    updatedAt: time,
  }),
  selectedRepositories,
);

export const accountWebhooks: Facet<AccountWebhooks, WebhookEvent> = {
  kinds: webhookEventKinds,
  initial: { webhooks: new Map<WebhookId, Webhook>() },
  evolve: evolveWebhooks,
  snapshot: object<AccountWebhooks>({ webhooks: byId(webhook) }),
  sizeBytes({ webhooks }) {
    let total = 0;
    for (const { repositories } of webhooks.values()) total += 1_000 + 60 * repositories.repositoryIds.length;
    return total;
  },
};
