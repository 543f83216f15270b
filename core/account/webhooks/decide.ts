/**
 * Decides the commands of an account's webhooks.
 *
 * Invariants: a caller that may use only some repositories creates webhooks for those alone. It can neither change
 * a webhook that is notified of another repository nor learn that such a webhook exists.
 */
import { coversSelection, type RepositorySelection } from '../../access-token/repository-selection.ts';
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import { WEBHOOKS_MAX } from '../../kernel/limits.ts';
import type { Account, OpenAccount } from '../state.ts';
import type { WebhookCommand } from './commands.ts';
import type { WebhookEvent } from './events.ts';
import type { Webhook } from './state.ts';

/** `selection` holds the repositories that the caller may use. */
export function decideWebhook(
  account: Account,
  selection: RepositorySelection,
  command: WebhookCommand,
): Decision<WebhookEvent> {
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  if (command.type === 'CreateWebhook') return decideCreateWebhook(account, selection, command);
  const webhook = account.webhooks.get(command.id);
  if (webhook === undefined || !coversSelection(selection, webhook.repositories))
    return refuse({ code: 'webhook-not-found' });
  switch (command.type) {
    case 'ChangeWebhook':
      return decideChangeWebhook(webhook, command);
    case 'RotateWebhookSecret': {
      const previous_valid_until = command.previousValidUntil;
      const data = { webhook_id: webhook.id, secret_ref: command.secretRef, previous_valid_until };
      return accept<WebhookEvent>({ type: 'WebhookSecretRotated', data });
    }
    case 'DeleteWebhook':
      return accept<WebhookEvent>({ type: 'WebhookDeleted', data: { webhook_id: webhook.id } });
  }
}

function decideCreateWebhook(
  { webhooks }: OpenAccount,
  { scope, repositoryIds }: RepositorySelection,
  command: Extract<WebhookCommand, { type: 'CreateWebhook' }>,
): Decision<WebhookEvent> {
  if (command.events.length === 0) return refuse({ code: 'webhook-events-empty' });
  if (webhooks.size >= WEBHOOKS_MAX) return refuse({ code: 'webhook-limit-reached' });
  const { urlRef, secretRef } = command.target;
  const events = withoutDuplicates(command.events);
  return accept<WebhookEvent>({
    type: 'WebhookCreated',
    data: {
      webhook_id: command.id,
      url_ref: urlRef,
      secret_ref: secretRef,
      events,
      active: command.active,
      scope,
      repository_ids: repositoryIds,
    },
  });
}

/** One event for each changed field. */
function decideChangeWebhook(
  webhook: Webhook,
  { target, events: wanted, active = webhook.active }: Extract<WebhookCommand, { type: 'ChangeWebhook' }>,
): Decision<WebhookEvent> {
  if (wanted?.length === 0) return refuse({ code: 'webhook-events-empty' });
  const webhook_id = webhook.id;
  const decided: WebhookEvent[] = [];
  if (target !== undefined) {
    const data = { webhook_id, url_ref: target.urlRef, secret_ref: target.secretRef };
    decided.push({ type: 'WebhookUrlChanged', data });
  }
  const events = withoutDuplicates(wanted ?? webhook.events);
  if (events.join() !== webhook.events.join())
    decided.push({ type: 'WebhookEventsChanged', data: { webhook_id, events } });
  if (active !== webhook.active) {
    decided.push({ type: active ? 'WebhookActivated' : 'WebhookDeactivated', data: { webhook_id } });
  }
  return accept<WebhookEvent>(...decided);
}

function withoutDuplicates<Item>(items: readonly Item[]): readonly Item[] {
  return [...new Set(items)];
}
