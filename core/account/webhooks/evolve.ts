/** Folds the events of an account's webhooks. */
import type { Scope } from '../../kernel/grants.ts';
import { type RepositoryId, type Timestamp, timestamp, uuid, type WebhookId } from '../../kernel/ids.ts';
import type { JsonObject } from '../../kernel/json.ts';
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

/** The stored form, which only this file writes and reads. A change of it raises the version of the snapshot. */
type WebhooksSnapshot = {
  readonly webhooks: readonly {
    readonly id: string;
    readonly urlRef: string;
    readonly secretRef: string;
    readonly previousSecret: { readonly ref: string; readonly validUntil: string } | null;
    readonly events: readonly WebhookEventKind[];
    readonly scope: Scope;
    readonly repositoryIds: readonly string[];
    readonly active: boolean;
    readonly createdAt: string;
    readonly updatedAt: string;
  }[];
};

/** The cast is sound because only `writeSnapshot` below makes these members. */
function parseSnapshot(snapshot: JsonObject): WebhooksSnapshot {
  return snapshot as WebhooksSnapshot;
}

function storedWebhook({ scope, repositoryIds, ...stored }: WebhooksSnapshot['webhooks'][number]): Webhook {
  const { previousSecret: previous } = stored;
  return {
    ...stored,
    repositories: { scope, repositoryIds: repositoryIds.map((id) => uuid<RepositoryId>(id)) },
    id: uuid(stored.id),
    urlRef: vaultRef(stored.urlRef),
    secretRef: vaultRef(stored.secretRef),
    previousSecret:
      previous === null ? null : { ref: vaultRef(previous.ref), validUntil: timestamp(previous.validUntil) },
    createdAt: timestamp(stored.createdAt),
    updatedAt: timestamp(stored.updatedAt),
  };
}

export const accountWebhooks: Facet<AccountWebhooks, WebhookEvent> = {
  kinds: webhookEventKinds,
  initial: { webhooks: new Map<WebhookId, Webhook>() },
  evolve: evolveWebhooks,
  writeSnapshot({ webhooks }) {
    const stored = [...webhooks.values()].map(({ repositories: { scope, repositoryIds }, ...webhook }) => ({
      ...webhook,
      scope,
      repositoryIds,
    }));
    return { webhooks: stored } satisfies WebhooksSnapshot;
  },
  readSnapshot(snapshot) {
    const { webhooks } = parseSnapshot(snapshot);
    return { webhooks: new Map(webhooks.map(storedWebhook).map((webhook) => [webhook.id, webhook])) };
  },
  sizeBytes({ webhooks }) {
    let total = 0;
    for (const { repositories } of webhooks.values()) total += 1_000 + 60 * repositories.repositoryIds.length;
    return total;
  },
};
