/** Decides what becomes of an account, of its list of repositories and of its webhooks. */
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import type { RepositoryId } from '../kernel/ids.ts';
import { REPOSITORY_DESCRIPTION_LENGTH_MAX, WEBHOOKS_MAX } from '../kernel/limits.ts';
import { codePointCount } from '../kernel/text.ts';
import type { AccountCommand, WebhookCommand } from './commands.ts';
import type { AccountEvent } from './events.ts';
import { repositoryNameKey, repositoryNameRefusal } from './names.ts';
import type { Account, OpenAccount, Webhook } from './state.ts';

export function decideAccount(state: Account, command: AccountCommand): Decision<AccountEvent> {
  switch (command.type) {
    case 'CreateAccount':
      // An abandoned stream: the claim took longer than its time and someone else may hold the name now.
      if (state.status !== 'absent') return refuse({ code: 'username-taken', username: command.username });
      return accept<AccountEvent>({
        type: 'AccountCreated',
        data: {
          username: command.username,
          email_ref: command.emailRef,
          password_hash_ref: command.passwordHashRef,
          plan: command.plan,
        },
      });
    case 'AbandonAccount':
      return state.status === 'absent' ? accept<AccountEvent>({ type: 'Abandoned', data: {} }) : accept<AccountEvent>();
    case 'EraseAccount':
      // Erased already: an erasure cut in half, whose other steps follow now.
      if (state.status === 'erased') return accept<AccountEvent>();
      if (state.status !== 'open') return refuse({ code: 'account-not-found' });
      return accept<AccountEvent>({ type: 'AccountErased', data: {} });
    case 'DeleteRepository':
      return state.status === 'open' || state.status === 'erased'
        ? decideDeleteRepository(state.repositories, command.id)
        : refuse({ code: 'account-not-found' });
    case 'ChangePlan':
    case 'ChangePassword':
    case 'CreateRepository':
    case 'DescribeRepository':
    case 'CreateWebhook':
    case 'ChangeWebhook':
    case 'RotateWebhookSecret':
    case 'DeleteWebhook':
      return state.status === 'open' ? decideOpen(state, command) : refuse({ code: 'account-not-found' });
  }
}

type OpenAccountCommand =
  | WebhookCommand
  | Extract<AccountCommand, { type: 'ChangePlan' | 'ChangePassword' | 'CreateRepository' | 'DescribeRepository' }>;

function decideOpen(state: OpenAccount, command: OpenAccountCommand): Decision<AccountEvent> {
  switch (command.type) {
    case 'ChangePlan':
      return command.plan === state.plan
        ? accept<AccountEvent>()
        : accept<AccountEvent>({ type: 'PlanChanged', data: { plan: command.plan } });
    case 'ChangePassword':
      return accept<AccountEvent>({ type: 'PasswordChanged', data: { password_hash_ref: command.passwordHashRef } });
    case 'CreateRepository':
      return decideCreateRepository(state, command);
    case 'DescribeRepository': {
      const repository = state.repositories.get(command.id);
      if (repository === undefined) return refuse({ code: 'repository-not-found' });
      if (tooLong(command.description)) return refuse({ code: 'repository-description-length' });
      if (command.description === repository.description) return accept<AccountEvent>();
      const data = { repository_id: command.id, description: command.description };
      return accept<AccountEvent>({ type: 'RepositoryDescribed', data });
    }
    case 'CreateWebhook':
    case 'ChangeWebhook':
    case 'RotateWebhookSecret':
    case 'DeleteWebhook':
      return decideWebhook(state, command);
  }
}

function decideDeleteRepository(owned: OpenAccount['repositories'], id: RepositoryId): Decision<AccountEvent> {
  const repository = owned.get(id);
  if (repository === undefined) return refuse({ code: 'repository-not-found' });
  return accept<AccountEvent>({ type: 'RepositoryDeleted', data: { repository_id: id, name: repository.name } });
}

function decideCreateRepository(
  state: OpenAccount,
  command: Extract<AccountCommand, { type: 'CreateRepository' }>,
): Decision<AccountEvent> {
  const badName = repositoryNameRefusal(command.name);
  if (badName !== null) return refuse(badName);
  if (tooLong(command.description)) return refuse({ code: 'repository-description-length' });
  if (state.repositoryNames.has(repositoryNameKey(command.name))) {
    return refuse({ code: 'repository-name-taken', name: command.name });
  }
  const quota = command.quotas.repos;
  if (quota !== null && state.repositories.size >= quota) return refuse({ code: 'repository-quota-reached', quota });
  return accept<AccountEvent>({
    type: 'RepositoryCreated',
    data: {
      repository_id: command.id,
      name: command.name,
      description: command.description,
      default_branch: command.defaultBranch,
      storage_bucket_id: command.storageBucketId,
    },
  });
}

function tooLong(description: string | null): boolean {
  return description !== null && codePointCount(description) > REPOSITORY_DESCRIPTION_LENGTH_MAX;
}

function decideWebhook(state: OpenAccount, command: WebhookCommand): Decision<AccountEvent> {
  if (command.type === 'CreateWebhook') {
    if (command.events.length === 0) return refuse({ code: 'webhook-events-empty' });
    if (state.webhooks.size >= WEBHOOKS_MAX) return refuse({ code: 'webhook-limit-reached' });
    const { urlRef, secretRef } = command.target;
    const events = withoutDuplicates(command.events);
    const data = { webhook_id: command.id, url_ref: urlRef, secret_ref: secretRef, events, active: command.active };
    return accept<AccountEvent>({ type: 'WebhookCreated', data });
  }
  const webhook = state.webhooks.get(command.id);
  if (webhook === undefined) return refuse({ code: 'webhook-not-found' });
  switch (command.type) {
    case 'ChangeWebhook':
      return decideChangeWebhook(webhook, command);
    case 'RotateWebhookSecret': {
      const previous_valid_until = command.previousValidUntil;
      const data = { webhook_id: webhook.id, secret_ref: command.secretRef, previous_valid_until };
      return accept<AccountEvent>({ type: 'WebhookSecretRotated', data });
    }
    case 'DeleteWebhook':
      return accept<AccountEvent>({ type: 'WebhookDeleted', data: { webhook_id: webhook.id } });
  }
}

/** An event for each thing that becomes another. */
function decideChangeWebhook(
  webhook: Webhook,
  { target, events: wanted, active = webhook.active }: Extract<WebhookCommand, { type: 'ChangeWebhook' }>,
): Decision<AccountEvent> {
  if (wanted?.length === 0) return refuse({ code: 'webhook-events-empty' });
  const webhook_id = webhook.id;
  const decided: AccountEvent[] = [];
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
  return accept<AccountEvent>(...decided);
}

function withoutDuplicates<Item>(items: readonly Item[]): readonly Item[] {
  return [...new Set(items)];
}
