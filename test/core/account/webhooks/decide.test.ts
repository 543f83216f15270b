/** The decisions about an account's webhooks. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ALL_REPOSITORIES, type RepositorySelection } from '../../../../core/access-token/repository-selection.ts';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import type { WebhookCommand } from '../../../../core/account/webhooks/commands.ts';
import { decideWebhook } from '../../../../core/account/webhooks/decide.ts';
import { timestamp } from '../../../../core/kernel/ids.ts';
import { WEBHOOKS_MAX } from '../../../../core/kernel/limits.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import {
  accountCreated,
  accountErased,
  repositoryId,
  webhookTarget as target,
  webhookCreated,
  webhookDeleted,
  webhookId,
} from '../../../support/account-history.ts';
import { given } from '../../../support/fold.ts';

const another = { urlRef: vaultRef('3'.repeat(64)), secretRef: vaultRef('4'.repeat(64)) };

type CreateWebhook = Extract<WebhookCommand, { type: 'CreateWebhook' }>;

function create(n: number, more: Partial<CreateWebhook> = {}): CreateWebhook {
  return { type: 'CreateWebhook', id: webhookId(n), target, events: ['push'], active: true, ...more };
}

/** Returns the events, or the code of the refusal. */
function decide(
  history: readonly AccountEvent[],
  command: WebhookCommand,
  selection: RepositorySelection = ALL_REPOSITORIES,
) {
  const decision = decideWebhook(given(accounts, ...history), selection, command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

describe("An account's webhooks", () => {
  const webhook_id = webhookId(1);
  const one = [accountCreated, webhookCreated(1)];

  test('are created with the vault references of their URL and secret, and with each event once', () => {
    assert.deepEqual(decide([accountCreated], create(1)), [webhookCreated(1)]);
    assert.deepEqual(decide([accountCreated], create(1, { events: ['ping', 'push', 'ping'], active: false })), [
      {
        type: 'WebhookCreated',
        data: {
          webhook_id,
          url_ref: target.urlRef,
          secret_ref: target.secretRef,
          events: ['ping', 'push'],
          active: false,
          scope: 'ALL_REPO',
          repository_ids: [],
        },
      },
    ]);
    assert.equal(decide([accountCreated], create(1, { events: [] })), 'webhook-events-empty');
  });

  test('can be as many as the limit allows, and no more', () => {
    const many = (count: number) => [accountCreated, ...Array.from({ length: count }, (_, n) => webhookCreated(n))];
    assert.equal(typeof decide(many(WEBHOOKS_MAX - 1), create(99)), 'object');
    assert.equal(decide(many(WEBHOOKS_MAX), create(99)), 'webhook-limit-reached');
    assert.equal(typeof decide([...many(WEBHOOKS_MAX), webhookDeleted(3)], create(99)), 'object');
  });

  test('make one event for each changed field', () => {
    const change = (changes: Omit<Extract<WebhookCommand, { type: 'ChangeWebhook' }>, 'type' | 'id'>) =>
      decide(one, { type: 'ChangeWebhook', id: webhookId(1), ...changes });
    assert.deepEqual(change({}), []);
    assert.deepEqual(change({ events: ['push', 'push'], active: true }), []);
    assert.deepEqual(change({ target: another, events: ['delete', 'push'], active: false }), [
      { type: 'WebhookUrlChanged', data: { webhook_id, url_ref: another.urlRef, secret_ref: another.secretRef } },
      { type: 'WebhookEventsChanged', data: { webhook_id, events: ['delete', 'push'] } },
      { type: 'WebhookDeactivated', data: { webhook_id } },
    ]);
    assert.equal(change({ events: [] }), 'webhook-events-empty');
    const inactive: AccountEvent = { type: 'WebhookDeactivated', data: { webhook_id } };
    assert.deepEqual(decide([...one, inactive], { type: 'ChangeWebhook', id: webhookId(1), active: true }), [
      { type: 'WebhookActivated', data: { webhook_id } },
    ]);
  });

  test('get a new secret, while the previous one signs too until a given time', () => {
    const previousValidUntil = timestamp('2026-11-22T10:00:00.000Z');
    const secretRef = another.secretRef;
    const rotate = { type: 'RotateWebhookSecret', id: webhookId(1), secretRef, previousValidUntil } as const;
    assert.deepEqual(decide(one, rotate), [
      {
        type: 'WebhookSecretRotated',
        data: { webhook_id, secret_ref: secretRef, previous_valid_until: previousValidUntil },
      },
    ]);
  });

  test('are neither changed nor deleted if they do not exist', () => {
    const previousValidUntil = timestamp('2026-11-22T10:00:00.000Z');
    assert.deepEqual(decide(one, { type: 'DeleteWebhook', id: webhookId(1) }), [webhookDeleted(1)]);
    for (const history of [[accountCreated], [...one, webhookDeleted(1)]]) {
      for (const command of [
        { type: 'ChangeWebhook', id: webhookId(1), active: false },
        { type: 'RotateWebhookSecret', id: webhookId(1), secretRef: another.secretRef, previousValidUntil },
        { type: 'DeleteWebhook', id: webhookId(1) },
      ] satisfies WebhookCommand[]) {
        assert.equal(decide(history, command), 'webhook-not-found');
      }
    }
  });

  const tools: RepositorySelection = { scope: 'SELECTED_REPO', repositoryIds: [repositoryId(1), repositoryId(2)] };
  const toolsOnly = webhookCreated(1, { scope: 'SELECTED_REPO', repository_ids: [...tools.repositoryIds] });

  test('are notified of the repositories that their creator may use', () => {
    assert.deepEqual(decide([accountCreated], create(1), tools), [toolsOnly]);
  });

  // The attack: a token for one repository silences, redirects or deletes webhooks that are notified of others.
  test('do not exist for a caller that may not use all of their repositories', () => {
    const commands: readonly WebhookCommand[] = [
      { type: 'ChangeWebhook', id: webhookId(1), active: false },
      { type: 'ChangeWebhook', id: webhookId(1), target: another },
      {
        type: 'RotateWebhookSecret',
        id: webhookId(1),
        secretRef: another.secretRef,
        previousValidUntil: timestamp('2026-11-22T10:00:00.000Z'),
      },
      { type: 'DeleteWebhook', id: webhookId(1) },
    ];
    const first: RepositorySelection = { scope: 'SELECTED_REPO', repositoryIds: [repositoryId(1)] };
    const more: RepositorySelection = {
      scope: 'SELECTED_REPO',
      repositoryIds: [repositoryId(3), repositoryId(2), repositoryId(1)],
    };
    for (const command of commands) {
      assert.equal(decide([accountCreated, webhookCreated(1)], command, tools), 'webhook-not-found');
      assert.equal(decide([accountCreated, toolsOnly], command, first), 'webhook-not-found');
      for (const selection of [tools, more, ALL_REPOSITORIES]) {
        assert.equal(typeof decide([accountCreated, toolsOnly], command, selection), 'object');
      }
    }
  });

  test('need an open account', () => {
    for (const history of [[], [{ type: 'Abandoned', data: {} } satisfies AccountEvent], [...one, accountErased]]) {
      assert.equal(decide(history, create(2)), 'account-not-found');
      assert.equal(decide(history, { type: 'DeleteWebhook', id: webhookId(1) }), 'account-not-found');
    }
  });
});
