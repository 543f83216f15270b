/** What an account decides of itself and of its repositories. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AccountCommand } from '../../../core/account/commands.ts';
import { decideAccount } from '../../../core/account/decide.ts';
import type { AccountEvent } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { DEFAULT_PLANS, type PlanQuotas } from '../../../core/account/plans.ts';
import { type RepositoryId, timestamp, uuid, type WebhookId } from '../../../core/kernel/ids.ts';
import { WEBHOOKS_MAX } from '../../../core/kernel/limits.ts';
import { vaultRef } from '../../../core/ports/vault.ts';
import { given } from '../../support/fold.ts';

const emailRef = vaultRef('e'.repeat(64));
const passwordHashRef = vaultRef('a'.repeat(64));
const created: AccountEvent = {
  type: 'AccountCreated',
  data: { username: 'ada', email_ref: emailRef, password_hash_ref: passwordHashRef, plan: 'FREE' },
};

function repositoryId(n: number): RepositoryId {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${String(n).padStart(12, '0')}`);
}

function repositoryCreated(n: number, name: string): AccountEvent {
  const data = { repository_id: repositoryId(n), name, description: null, default_branch: null };
  return { type: 'RepositoryCreated', data: { ...data, storage_bucket_id: null } };
}

function deleted(n: number, name: string): AccountEvent {
  return { type: 'RepositoryDeleted', data: { repository_id: repositoryId(n), name } };
}

function create(n: number, name: string, more: Partial<Extract<AccountCommand, { type: 'CreateRepository' }>> = {}) {
  return {
    type: 'CreateRepository',
    id: repositoryId(n),
    name,
    description: null,
    defaultBranch: null,
    storageBucketId: null,
    quotas: DEFAULT_PLANS.PRO,
    ...more,
  } satisfies AccountCommand;
}

const reposOf = (repos: number | null): PlanQuotas => ({ ...DEFAULT_PLANS.FREE, repos });

/** The events decided, or the code of the refusal. */
function decide(history: readonly AccountEvent[], command: AccountCommand) {
  const decision = decideAccount(given(accounts, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

describe('An account', () => {
  const command: AccountCommand = { type: 'CreateAccount', username: 'ada', emailRef, passwordHashRef, plan: 'FREE' };

  test('comes into being once', () => {
    assert.deepEqual(decide([], command), [created]);
    assert.equal(decide([created], command), 'username-taken');
  });

  test('that was abandoned never comes into being', () => {
    assert.deepEqual(decide([], { type: 'AbandonAccount' }), [{ type: 'Abandoned', data: {} }]);
    const abandoned: AccountEvent = { type: 'Abandoned', data: {} };
    assert.equal(decide([abandoned], command), 'username-taken');
    assert.deepEqual(decide([abandoned], { type: 'AbandonAccount' }), []);
  });

  test('that exists is not abandoned', () => {
    assert.deepEqual(decide([created], { type: 'AbandonAccount' }), []);
  });

  test('changes its plan and its password; the plan it has is no change', () => {
    assert.deepEqual(decide([created], { type: 'ChangePlan', plan: 'PRO' }), [
      { type: 'PlanChanged', data: { plan: 'PRO' } },
    ]);
    assert.deepEqual(decide([created], { type: 'ChangePlan', plan: 'FREE' }), []);
    const other = vaultRef('b'.repeat(64));
    assert.deepEqual(decide([created], { type: 'ChangePassword', passwordHashRef: other }), [
      { type: 'PasswordChanged', data: { password_hash_ref: other } },
    ]);
  });

  test('is erased once, by the first who asks for it', () => {
    const erased: AccountEvent = { type: 'AccountErased', data: {} };
    assert.deepEqual(decide([created], { type: 'EraseAccount' }), [erased]);
    assert.deepEqual(decide([created, erased], { type: 'EraseAccount' }), []);
    assert.equal(decide([], { type: 'EraseAccount' }), 'account-not-found');
    assert.equal(decide([{ type: 'Abandoned', data: {} }], { type: 'EraseAccount' }), 'account-not-found');
  });

  test('that was erased lets go of its repositories and takes no other command', () => {
    const history = [created, repositoryCreated(1, 'Tools'), { type: 'AccountErased', data: {} } as const];
    assert.deepEqual(decide(history, { type: 'DeleteRepository', id: repositoryId(1) }), [deleted(1, 'Tools')]);
    assert.equal(decide(history, { type: 'DeleteRepository', id: repositoryId(2) }), 'repository-not-found');
    assert.equal(decide(history, command), 'username-taken');
    assert.deepEqual(decide(history, { type: 'AbandonAccount' }), []);
    for (const refused of [
      { type: 'ChangePlan', plan: 'PRO' },
      { type: 'ChangePassword', passwordHashRef },
      create(2, 'a'),
      { type: 'DescribeRepository', id: repositoryId(1), description: null },
    ] satisfies AccountCommand[]) {
      assert.equal(decide(history, refused), 'account-not-found');
    }
  });

  test('that does not exist, or never will, takes no command', () => {
    for (const history of [[], [{ type: 'Abandoned', data: {} } satisfies AccountEvent]]) {
      for (const refused of [
        { type: 'ChangePlan', plan: 'PRO' },
        { type: 'ChangePassword', passwordHashRef },
        create(1, 'a'),
        { type: 'DescribeRepository', id: repositoryId(1), description: null },
        { type: 'DeleteRepository', id: repositoryId(1) },
        createHook(1),
        { type: 'DeleteWebhook', id: webhookId(1) },
      ] satisfies AccountCommand[]) {
        assert.equal(decide(history, refused), 'account-not-found');
      }
    }
  });
});

describe("An account's repositories", () => {
  test('are created with all their creator chose', () => {
    const storageBucketId = uuid('0190f3e2-7c1a-7b4e-9a35-ffffffffffff');
    const chosen = { description: 'Tools', defaultBranch: 'trunk', storageBucketId };
    assert.deepEqual(decide([created], create(1, 'Tools', chosen)), [
      {
        type: 'RepositoryCreated',
        data: {
          repository_id: repositoryId(1),
          name: 'Tools',
          description: 'Tools',
          default_branch: 'trunk',
          storage_bucket_id: storageBucketId,
        },
      },
    ]);
  });

  test('have names that are valid and, without case, taken once', () => {
    assert.equal(decide([created], create(1, 'a..b')), 'repository-name-invalid');
    assert.equal(decide([created, repositoryCreated(1, 'Tools')], create(2, 'tOOLS')), 'repository-name-taken');
  });

  test('give their names back when they are deleted', () => {
    const history = [created, repositoryCreated(1, 'Tools')];
    assert.deepEqual(decide(history, { type: 'DeleteRepository', id: repositoryId(1) }), [deleted(1, 'Tools')]);
    assert.notEqual(decide([...history, deleted(1, 'Tools')], create(2, 'tools')), 'repository-name-taken');
  });

  test('are as many as the quota says, not one more', () => {
    const two = [created, repositoryCreated(1, 'a'), repositoryCreated(2, 'b')];
    assert.equal(typeof decide(two, create(3, 'c', { quotas: reposOf(3) })), 'object');
    assert.equal(decide(two, create(3, 'c', { quotas: reposOf(2) })), 'repository-quota-reached');
    assert.equal(decide(two, create(3, 'c', { quotas: reposOf(1) })), 'repository-quota-reached');
    assert.equal(decide([created], create(1, 'a', { quotas: reposOf(0) })), 'repository-quota-reached');
    assert.equal(typeof decide(two, create(3, 'c', { quotas: reposOf(null) })), 'object');
    assert.equal(typeof decide([...two, deleted(1, 'a')], create(3, 'c', { quotas: reposOf(2) })), 'object');
  });

  test('have descriptions of up to 1,000 code points', () => {
    const history = [created, repositoryCreated(1, 'a')];
    for (const character of ['x', 'é', '😀']) {
      const [full, over] = [character.repeat(1_000), character.repeat(1_001)];
      const describe = (description: string): AccountCommand => ({
        type: 'DescribeRepository',
        id: repositoryId(1),
        description,
      });
      assert.equal(typeof decide(history, describe(full)), 'object');
      assert.equal(decide(history, describe(over)), 'repository-description-length');
      assert.equal(typeof decide(history, create(2, 'b', { description: full })), 'object');
      assert.equal(decide(history, create(2, 'b', { description: over })), 'repository-description-length');
    }
  });

  test('are described anew, also with nothing; what they are described as already is no change', () => {
    const described: AccountEvent = {
      type: 'RepositoryDescribed',
      data: { repository_id: repositoryId(1), description: 'Tools' },
    };
    const history = [created, repositoryCreated(1, 'a'), described];
    const describe = (description: string | null): AccountCommand => ({
      type: 'DescribeRepository',
      id: repositoryId(1),
      description,
    });
    assert.deepEqual(decide(history, describe('Tools')), []);
    assert.deepEqual(decide(history, describe(null)), [
      { type: 'RepositoryDescribed', data: { repository_id: repositoryId(1), description: null } },
    ]);
  });

  test('that are not there are neither described nor deleted', () => {
    for (const history of [[created], [created, repositoryCreated(1, 'a'), deleted(1, 'a')]]) {
      const id = repositoryId(1);
      assert.equal(decide(history, { type: 'DescribeRepository', id, description: null }), 'repository-not-found');
      assert.equal(decide(history, { type: 'DeleteRepository', id }), 'repository-not-found');
    }
  });
});

const target = { urlRef: vaultRef('1'.repeat(64)), secretRef: vaultRef('2'.repeat(64)) };
const another = { urlRef: vaultRef('3'.repeat(64)), secretRef: vaultRef('4'.repeat(64)) };

function webhookId(n: number): WebhookId {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${String(1_000 + n).padStart(12, '0')}`);
}

function createHook(n: number, more: Partial<Extract<AccountCommand, { type: 'CreateWebhook' }>> = {}) {
  const command = { type: 'CreateWebhook', id: webhookId(n), target, events: ['push'], active: true } as const;
  return { ...command, ...more } satisfies AccountCommand;
}

function hookCreated(n: number): AccountEvent {
  const refs = { url_ref: target.urlRef, secret_ref: target.secretRef };
  return { type: 'WebhookCreated', data: { webhook_id: webhookId(n), ...refs, events: ['push'], active: true } };
}

function hookDeleted(n: number): AccountEvent {
  return { type: 'WebhookDeleted', data: { webhook_id: webhookId(n) } };
}

describe("An account's webhooks", () => {
  const webhook_id = webhookId(1);
  const one = [created, hookCreated(1)];

  test('are created with what the vault calls their URL and secret, and with each event once', () => {
    assert.deepEqual(decide([created], createHook(1)), [hookCreated(1)]);
    assert.deepEqual(decide([created], createHook(1, { events: ['ping', 'push', 'ping'], active: false })), [
      {
        type: 'WebhookCreated',
        data: {
          webhook_id,
          url_ref: target.urlRef,
          secret_ref: target.secretRef,
          events: ['ping', 'push'],
          active: false,
        },
      },
    ]);
    assert.equal(decide([created], createHook(1, { events: [] })), 'webhook-events-empty');
  });

  test('are as many as the limit says, not one more', () => {
    const many = (count: number) => [created, ...Array.from({ length: count }, (_, n) => hookCreated(n))];
    assert.equal(typeof decide(many(WEBHOOKS_MAX - 1), createHook(99)), 'object');
    assert.equal(decide(many(WEBHOOKS_MAX), createHook(99)), 'webhook-limit-reached');
    assert.equal(typeof decide([...many(WEBHOOKS_MAX), hookDeleted(3)], createHook(99)), 'object');
  });

  test('change by an event for each thing that becomes another', () => {
    const change = (changes: Omit<Extract<AccountCommand, { type: 'ChangeWebhook' }>, 'type' | 'id'>) =>
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

  test('get a new secret, and the time until which the one before signs too', () => {
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

  test('that are not there are neither changed nor deleted', () => {
    const previousValidUntil = timestamp('2026-11-22T10:00:00.000Z');
    assert.deepEqual(decide(one, { type: 'DeleteWebhook', id: webhookId(1) }), [hookDeleted(1)]);
    for (const history of [[created], [...one, hookDeleted(1)]]) {
      for (const command of [
        { type: 'ChangeWebhook', id: webhookId(1), active: false },
        { type: 'RotateWebhookSecret', id: webhookId(1), secretRef: another.secretRef, previousValidUntil },
        { type: 'DeleteWebhook', id: webhookId(1) },
      ] satisfies AccountCommand[]) {
        assert.equal(decide(history, command), 'webhook-not-found');
      }
    }
  });
});
